// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/forward.hpp"

#include <rte_cycles.h>

namespace weir::lcore {

/// The switch's clock in nanoseconds: the time stamp counter, which all cores share.
class Clock {
 public:
  Clock() : ns_per_cycle_(((__uint128_t{1'000'000'000} << kShift) / rte_get_tsc_hz())) {}

  frame::Instant now() const {
    return frame::Instant::from_ns(
        static_cast<std::uint64_t>((rte_rdtsc() * ns_per_cycle_) >> kShift));
  }

 private:
  static constexpr unsigned kShift = 32;
  __uint128_t ns_per_cycle_; // fixed point
};

} // namespace weir::lcore
