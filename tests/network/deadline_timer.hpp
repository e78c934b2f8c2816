// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/time.hpp"
#include "network/time.hpp"

#include <optional>

namespace weir::network {

/// A time as the endpoint's type.
constexpr endpoint::TimePoint endpoint_time(Time time) {
  return endpoint::TimePoint(endpoint::Duration(time));
}

/// A host's or a switch's timer on an event queue that cannot cancel an event. An event that comes
/// before the present deadline is ignored.
class DeadlineTimer {
 public:
  /// The time of the event that this deadline needs; nullopt if an earlier event exists.
  std::optional<Time> set(std::optional<endpoint::TimePoint> deadline) {
    return set(deadline ? static_cast<Time>(deadline->time_since_epoch().count()) : kNoTime);
  }

  std::optional<Time> set(Time time) {
    if (time >= armed_for_) {
      return std::nullopt;
    }
    armed_for_ = time;
    return time;
  }

  /// Call it when an event comes. True if the deadline has come; then set the timer again.
  bool goes_off(Time now) {
    if (now < armed_for_) {
      return false;
    }
    armed_for_ = kNoTime;
    return true;
  }

 private:
  Time armed_for_ = kNoTime;
};

} // namespace weir::network
