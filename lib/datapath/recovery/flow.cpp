// SPDX-License-Identifier: BSD-3-Clause
#include "recovery/flow.hpp"

#include <algorithm>
#include <cassert>

namespace weir::recovery {

void Flow::begin(std::uint32_t psn, std::uint32_t qp, std::uint8_t timeout_exponent,
                 std::uint64_t now_ns) {
  const FlowCounters kept = counters; // of all incarnations
  *this = {};
  counters = kept;
  next_in = furthest_in = next_out = unacknowledged = psn;
  previous = wire::psn_add(psn, -1);
  own_qp = qp;
  ack_timeout = timeout_exponent;
  is_live = true;
  heard_at = progress_at = now_ns;
}

bool Flow::goes_back(std::uint64_t now_ns) {
  const bool was_hushed = now_ns < hushed_until;
  pass = Pass::nothing;
  is_own_pass = asked_at != 0 && !went_back;
  went_back = true;
  hushed_until = held_until = 0;
  return was_hushed;
}

void Flow::acknowledge(std::uint32_t next, std::uint64_t now_ns) {
  assert(is_in_order() && !wire::psn_before(next, unacknowledged) &&
         !wire::psn_before(next_out, next));
  if (next == unacknowledged) {
    return;
  }
  unacknowledged = next;
  progress_at = now_ns;
  asks = 0;
  resends = 0;
  answers = wire::psn_before(next, enough) ? answers : 0;
  had_no_buffer = false;
  is_answer_due = false;
  is_silenced = false;
  if (is_timing && wire::psn_before(timed, next)) {
    is_timing = false;
    round_trip.take(now_ns - timed_since);
    doublings = 0;
  }
}

Awaited Flow::awaited(std::uint64_t now_ns) const {
  if (now_ns < hushed_until) {
    return Awaited::end_of_wait;
  }
  if (asks != 0) {
    return Awaited::repeat;
  }
  if (lacks_packets()) {
    return Awaited::lost_packet;
  }
  const bool sees_acknowledgements = own_qp != 0;
  return sees_acknowledgements && is_outstanding() ? Awaited::acknowledgement
                                                   : Awaited::next_packet;
}

std::uint64_t Flow::may_answer_at() const {
  if (answers == 0) {
    return 0;
  }
  if (answers > kTries) {
    return progress_at + doubled_pause(round_trip_timer(), answers - kTries);
  }
  if (had_no_buffer) {
    return 0;
  }
  return progress_at + answer_pause();
}

std::uint64_t Flow::may_answer_switch_at() const {
  const bool was_held = had_no_buffer && answers <= kTries;
  if (answers == 0 || was_held) {
    return 0;
  }
  return progress_at + doubled_pause(kSwitchPause, answers - 1u);
}

std::uint64_t Flow::doubled_pause(std::uint64_t first, std::uint32_t times) const {
  return std::min(
      {first << std::min(times, kMostDoublings), kLongestAnswerPause, told_ack_timeout()});
}

std::uint64_t Flow::answer_pause() const {
  return std::min(round_trip_timer(), told_ack_timeout() / 2);
}

std::uint64_t Flow::told_ack_timeout() const {
  return ack_timeout == 0 ? UINT64_MAX : kAckTimeoutUnit << ack_timeout;
}

void Flow::answer() {
  if (answers == 0) {
    const std::int32_t outstanding = wire::psn_distance(unacknowledged, next_out);
    enough = wire::psn_add(unacknowledged, (outstanding + kShareOfProgress - 1) / kShareOfProgress);
  }
  answers += answers < UINT8_MAX ? 1 : 0;
  had_no_buffer = false;
}

std::uint64_t Flow::keep_alive_at() const {
  return std::max(heard_at, kept_alive_at) + keep_alive_interval(ack_timeout);
}

std::uint64_t ack_timeout_ns(std::uint8_t exponent) {
  constexpr std::uint8_t least = 12;
  return kAckTimeoutUnit << std::max(exponent, least);
}

} // namespace weir::recovery
