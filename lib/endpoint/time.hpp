// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace weir::endpoint {

using Duration = std::chrono::nanoseconds;

/// Names the caller's clock and has no now(): time is handed in. Any origin will do, as long as it
/// never runs backwards.
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
