// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace weir::endpoint {

using Duration = std::chrono::nanoseconds;

/// The caller's clock. It has no now(): the caller passes the time in. It may start anywhere but
/// never goes backwards.
struct CallersClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<CallersClock>;
  static constexpr bool is_steady = true;
};

using TimePoint = CallersClock::time_point;

/// A timer that is not running.
inline constexpr TimePoint kNever = TimePoint::max();

} // namespace weir::endpoint
