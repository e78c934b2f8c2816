// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::frame {

inline constexpr std::uint64_t kNsPerMs = 1'000'000;

/// From `since_ns` to now; 0 when that is still to come, because another lcore's clock is ahead.
constexpr std::uint64_t elapsed_ns(std::uint64_t since_ns, std::uint64_t now_ns) {
  return now_ns < since_ns ? 0 : now_ns - since_ns;
}

/// A point in time. The clock is read once per burst. It fits one register: of two, gcc 12 makes
/// one vector when it copies them from where it has just spilled them, and that waits for the two
/// stores.
struct Instant {
  std::uint64_t ns = 0;

  std::uint64_t ms() const { return ns / kNsPerMs; }
};

} // namespace weir::frame
