// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::frame {

inline constexpr std::uint64_t kNsPerMs = 1'000'000;

/// From `since_ns` to now; 0 when that is still to come, because another lcore's clock is ahead.
constexpr std::uint64_t elapsed_ns(std::uint64_t since_ns, std::uint64_t now_ns) {
  return now_ns < since_ns ? 0 : now_ns - since_ns;
}

/// A point in time. The clock is read once per burst.
struct Instant {
  std::uint64_t ns = 0;
  std::uint64_t ms = 0;

  static Instant from_ns(std::uint64_t ns) { return {ns, ns / kNsPerMs}; }
};

} // namespace weir::frame
