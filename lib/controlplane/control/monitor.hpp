// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/snapshots.hpp"
#include "lcore/quiesce.hpp"

#include <chrono>
#include <thread>
#include <vector>

namespace weir::control {

class Inspector;

/// Reads what the monitor sees, on the monitor's thread.
class MonitorReader {
 public:
  virtual ~MonitorReader() = default;

  /// May throw lcore::LcoreError; then all readers hear of it.
  virtual void see(const Look& look) = 0;

  /// An lcore did not stop, so there is nothing to see.
  virtual void miss(const lcore::LcoreError&) {}
};

/// The one thread that looks at the switch again and again by itself: a prompt may keep the main
/// one. All readers see the same look, in their order. The first is a period after the beginning.
class Monitor {
 public:
  using Readers = std::vector<MonitorReader*>;

  static constexpr std::chrono::seconds kPeriod{1};

  /// The switch runs, and outlives it, as the readers do.
  Monitor(const Inspector& inspector, Readers readers, std::chrono::milliseconds period = kPeriod);
  ~Monitor() = default;
  Monitor(const Monitor&) = delete; // the thread refers to it
  Monitor& operator=(const Monitor&) = delete;

 private:
  void run(const std::stop_token& stop);
  void look();

  const Inspector& inspector_;
  const Readers readers_;
  const std::chrono::milliseconds period_;
  std::jthread thread_; // the last one: it uses the others
};

} // namespace weir::control
