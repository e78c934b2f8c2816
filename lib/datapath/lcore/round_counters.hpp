// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"

#include <cstdint>

namespace weir::lcore {

/// Once that an lcore was quiesced for a question.
struct Stop {
  std::uint64_t ns = 0;
  bool kept_cpu = false; // it did not lose the CPU since it stayed awake, except when it yielded
};

/// How many rounds there were, and how full.
struct RoundCounters {
  std::uint64_t rounds = 0;
  std::uint64_t idle_rounds = 0;
  std::uint64_t reductions_for_others = 0; // slots reduced for other lcores' workers
  std::uint64_t handed_over = 0;           // frames for other lcores' workers
  std::uint64_t starved_rounds = 0;        // of the rounds that checked: the mempool was empty
  frame::Histogram rx_burst;               // packets in each receive burst that is not empty
  frame::Histogram quiescent_ns;           // for how long each time, time without the CPU included
  Stop last_stop;                          // the last one before that in which this is read
};

} // namespace weir::lcore
