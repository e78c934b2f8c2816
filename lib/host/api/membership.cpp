// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace weir::host {

namespace {

// How often a transport is polled that nobody can wait for.
constexpr auto kBusyNap = std::chrono::microseconds(50);
constexpr auto kIdleNap = std::chrono::milliseconds(1); // how long a peer waits for an ACK

constexpr auto kLookPeriod = std::chrono::milliseconds(10); // two system calls

} // namespace

std::string describe_refused(std::size_t number, const program::Operator& by) {
  return fmt::format("operator {} ({}, digest {}): a switch on the way lacks it", number, by.name(),
                     program::to_string(by.digest()));
}

std::optional<Deadline> Membership::next_work() const {
  if (!transport->arm()) {
    return std::nullopt;
  }
  const Deadline due = engine->due();
  if (transport->descriptor() != kNoDescriptor) {
    return due;
  }
  const std::chrono::microseconds nap = engine->is_waiting() ? kBusyNap : kIdleNap;
  return std::min(due, Clock::now() + nap);
}

bool Membership::progress(Deadline deadline) {
  if (engine->step()) {
    return true;
  }
  if (const Deadline now = Clock::now(); deadline <= now) {
    look_for_callers(now);
    return false;
  }
  if (const std::optional<Deadline> due = next_work()) {
    if (waiter->sleep_until(std::min(*due, deadline), *bell)) {
      engine->hear_control();
    }
  }
  return false;
}

/// Those who come to the listener are turned away by threads that sleep; there may be none.
void Membership::look_for_callers(Deadline now) {
  if (now >= next_look) {
    next_look = now + kLookPeriod;
    waiter->sleep_until(Deadline::min(), *bell);
  }
}

void Membership::leave() {
  try {
    control->leave();
    while (!control->may_close()) {
      progress(Deadline::max());
    }
  } catch (const std::exception&) { // our calls are all done, so the error is another rank's
  }
}

GroupStatistics Membership::statistics() const {
  const TransportStatistics counted = transport->statistics();
  return {.messages_sent = engine->messages_sent(),
          .results_received = engine->results_received(),
          .retransmitted_packets = counted.retransmitted_packets,
          .ack_timeouts = counted.ack_timeouts,
          .frames_lost_on_purpose = counted.frames_lost_on_purpose,
          .callers_turned_away = callers_turned_away};
}

} // namespace weir::host
