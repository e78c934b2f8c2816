// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/forward.hpp"

#include <rte_cycles.h>

#include <chrono>

namespace weir::lcore {

/// The switch's clock in nanoseconds: the time stamp counter, which all cores share.
class Clock {
 public:
  Clock() : ns_per_cycle_(((__uint128_t{1'000'000'000} << kShift) / rte_get_tsc_hz())) {}

  frame::Instant now() const {
    return frame::Instant{static_cast<std::uint64_t>((rte_rdtsc() * ns_per_cycle_) >> kShift)};
  }

 private:
  static constexpr unsigned kShift = 32;
  __uint128_t ns_per_cycle_; // fixed point
};

/// When the switch's clock was 0, in nanoseconds since 1970 (UTC).
inline std::uint64_t unix_time_of_zero() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return static_cast<std::uint64_t>(now_ns) - Clock().now().ns;
}

} // namespace weir::lcore
