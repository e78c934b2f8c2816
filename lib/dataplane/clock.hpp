// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dataplane/forward.hpp"

#include <rte_cycles.h>

namespace weir::dataplane {

/// The switch's clock: the time stamp counter, which all cores share, in nanoseconds.
class Clock {
 public:
  Clock() : ns_per_cycle_(((__uint128_t{1'000'000'000} << kShift) / rte_get_tsc_hz())) {}

  Instant now() const {
    return Instant::from_ns(static_cast<std::uint64_t>((rte_rdtsc() * ns_per_cycle_) >> kShift));
  }

 private:
  static constexpr unsigned kShift = 32;
  __uint128_t ns_per_cycle_; // fixed point
};

} // namespace weir::dataplane
