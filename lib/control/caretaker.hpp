// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/leases.hpp"
#include "control/switch.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace weir::control {

/// A thread that looks once a second whether rings are to be reclaimed (control/leases.hpp). While
/// there are rings, all lcores stop for that as for a question.
class Caretaker {
 public:
  static constexpr std::chrono::seconds kPeriod{1};

  /// `weir` runs, and outlives it.
  explicit Caretaker(Switch& weir);
  ~Caretaker();
  Caretaker(const Caretaker&) = delete;
  Caretaker& operator=(const Caretaker&) = delete;

 private:
  void run();
  void look();
  void reclaim(std::uint32_t ring);

  Switch& weir_;
  Listening listening_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  bool is_over_ = false; // guarded by mutex_
  std::thread thread_;
};

} // namespace weir::control
