// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/time.hpp"
#include "network/time.hpp"

#include <optional>

namespace weir::network {

/// A moment as the endpoint names it.
constexpr endpoint::TimePoint endpoint_time(Time time) {
  return endpoint::TimePoint(endpoint::Duration(time));
}

/// A host's timer in an event queue that takes no event back: an event that is there for a later
/// deadline than the present one is ignored when it comes.
class DeadlineTimer {
 public:
  /// When an event is needed for this deadline; nullopt when one comes early enough.
  std::optional<Time> set(std::optional<endpoint::TimePoint> deadline) {
    if (!deadline) {
      return std::nullopt;
    }
    const auto time = static_cast<Time>(deadline->time_since_epoch().count());
    if (time >= armed_for_) {
      return std::nullopt;
    }
    armed_for_ = time;
    return time;
  }

  /// An event has come. True when it is to be acted on; then the timer is to be set again.
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
