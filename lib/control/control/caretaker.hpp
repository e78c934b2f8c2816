// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/leases.hpp"
#include "control/periodic.hpp"
#include "control/switch.hpp"

#include <chrono>

namespace weir::control {

/// A thread that looks once a second whether rings are to be reclaimed (control/leases.hpp). While
/// there are rings, all lcores stop for that as for a question.
class Caretaker {
 public:
  static constexpr std::chrono::seconds kPeriod{1};

  /// `weir` runs, and outlives it.
  explicit Caretaker(Switch& weir);

 private:
  void look();
  void reclaim(std::uint32_t ring);

  Switch& weir_;
  Listening listening_;
  Periodic looks_; // the last one: it uses the others
};

} // namespace weir::control
