// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/trace.hpp"
#include "lcore/lock_order.hpp"
#include "lcore/quiesce.hpp"

#include <deque>
#include <vector>

namespace weir::control {

/// What became of the last frames, on all lcores. Any thread may use it.
class Traces {
 public:
  /// `lcores` outlives it.
  explicit Traces(lcore::LcoreSet& lcores) : lcores_(lcores) {}

  void switch_on();
  void switch_off();
  /// Of all lcores, oldest first.
  std::vector<frame::TraceRecord> records();

 private:
  std::vector<frame::Trace> empty_ones() const;

  lcore::LcoreSet& lcores_;
  lcore::RankedMutex<lcore::LockRank::trace> one_reader_;
  std::vector<std::deque<frame::TraceRecord>> taken_; // by lcore
};

} // namespace weir::control
