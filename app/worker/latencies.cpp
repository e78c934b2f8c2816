// SPDX-License-Identifier: BSD-3-Clause
#include "worker/latencies.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace weir::app {
namespace {

std::uint64_t percentile(std::span<const std::uint64_t> sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100; // from 1
  return sorted[rank - 1];
}

} // namespace

Latencies latencies_of(std::vector<std::uint64_t> times) {
  std::ranges::sort(times);
  const std::uint64_t sum = std::accumulate(times.begin(), times.end(), std::uint64_t{0});
  return {.mean = static_cast<double>(sum) / static_cast<double>(times.size()),
          .min = times.front(),
          .p50 = percentile(times, 50),
          .p95 = percentile(times, 95),
          .p99 = percentile(times, 99),
          .max = times.back()};
}

} // namespace weir::app
