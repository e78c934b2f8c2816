// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace weir::app {

/// How long calls took, in nanoseconds.
struct Latencies {
  double mean = 0;
  std::uint64_t min = 0;
  std::uint64_t p50 = 0;
  std::uint64_t p95 = 0;
  std::uint64_t p99 = 0;
  std::uint64_t max = 0;
};

/// Percentile p is the nearest rank: the least time that p % of all times do not exceed. So each is
/// a time that was measured, and p99 of fewer than 100 times is the longest. There is at least one
/// time.
Latencies latencies_of(std::vector<std::uint64_t> times);

} // namespace weir::app
