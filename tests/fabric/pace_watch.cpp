// SPDX-License-Identifier: BSD-3-Clause
#include "pace_watch.hpp"

#include "violation.hpp"
#include "wire/psn.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::fabric {
namespace {

constexpr std::uint64_t kTries = 7;        // of a requester, so often at once after RNR NAKs
constexpr std::uint64_t kLateResends = 5;  // docs/protocol.md §9, R5
constexpr Time kFirstPause = 30'000;       // ns
constexpr Time kLongestPause = 15'000'000; // likewise
constexpr std::uint8_t kLeastTimeout = 12; // exponent; a shorter one makes pauses shorter

/// How many answers, after the first one, fit in so long with pauses that double.
std::uint64_t answers_within(Time time) {
  std::uint64_t answers = 0;
  for (Time pause = kFirstPause; time >= pause; ++answers) {
    time -= pause;
    pause = std::min(2 * pause, kLongestPause);
  }
  return answers;
}

} // namespace

bool PaceWatch::leads_to_switch(std::uint16_t sender) const {
  if (part_.is_outgoing(sender)) {
    return true;
  }
  const std::size_t receiver = part_.is_parent(sender) ? 0 : (sender + 1u) % part_.children.size();
  return part_.children[receiver].node.has_value();
}

void PaceWatch::look(const stage::InlineSwitch& engine, Time now) {
  if (!part_.exists() || !engine.has_ring(ring_)) {
    return;
  }
  const conn::Incarnations& incarnations = engine.worker_of(ring_).incarnations();
  standstills_.resize(part_.children.size() + (part_.parent ? 1 : 0));
  for (std::uint16_t sender = 0; sender < standstills_.size(); ++sender) {
    const recovery::Flow& flow = incarnations.flow_of({ring_, sender});
    if (flow.ack_timeout >= kLeastTimeout && leads_to_switch(sender)) {
      look_at(flow, incarnations.session_of(ring_), sender, now);
    }
  }
}

void PaceWatch::look_at(const recovery::Flow& flow, std::uint32_t session, std::uint16_t sender,
                        Time now) {
  Standstill& still = standstills_[sender];
  const std::uint64_t resent = flow.counters.resent;
  if (still.session != session || still.unacknowledged != flow.unacknowledged ||
      resent < still.resent) {
    still = {session, flow.unacknowledged, resent, 0, now};
  }
  const std::int32_t outstanding = wire::psn_distance(flow.unacknowledged, flow.next_out);
  still.outstanding = std::max(still.outstanding, std::uint64_t(std::max(outstanding, 0)));
  const std::uint64_t windows = 1 + kTries + kLateResends + answers_within(now - still.since);
  if (resent - still.resent > windows * still.outstanding) {
    throw Violation("§11", fmt::format("ring {}: {} packets were sent again to the switch behind "
                                       "sender {} in {} us, of {} outstanding, though nothing of "
                                       "them was acknowledged",
                                       ring_, resent - still.resent, sender,
                                       (now - still.since) / 1000, still.outstanding));
  }
}

} // namespace weir::fabric
