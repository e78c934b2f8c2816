// SPDX-License-Identifier: BSD-3-Clause
#include "stage/ring_life.hpp"

#include <algorithm>

namespace weir::stage {
namespace {

/// A host that has heard nothing asks again sooner than this, unless it is gone: the local ACK
/// timeouts of jobs are shorter.
constexpr std::uint64_t kAnswerTimeNs = 1'000'000'000;

std::uint64_t last_heard(const Worker& worker, std::uint16_t ring) {
  const conn::Incarnations& incarnations = worker.incarnations();
  std::uint64_t last = std::max(worker.state_of(ring).heard_at_ns,
                                incarnations.last_request(ring) * frame::kNsPerMs);
  for (std::uint16_t child = 0; child < incarnations.senders_of(ring); ++child) {
    last = std::max(last, incarnations.flow_of({ring, child}).heard_at);
  }
  return last;
}

/// Where the sender did not tell its queue pair, the switch knows no acknowledgement. A receiver
/// that has not answered to the last repeat either is given up.
bool is_acknowledgement_due(const recovery::Flow& flow, std::uint64_t silent_ns) {
  const bool sees_acknowledgements = flow.is_live && flow.own_qp != 0;
  const bool is_given_up = flow.resends == recovery::kMostResends && silent_ns > kAnswerTimeNs;
  return sees_acknowledgements && flow.is_outstanding() && !is_given_up;
}

} // namespace

RingLife life_of(const Worker& worker, std::uint16_t ring, const ring::RingSpec& spec,
                 frame::Instant now) {
  const conn::Incarnations& incarnations = worker.incarnations();
  const RingState& state = worker.state_of(ring);
  RingLife life{.heard_ns = last_heard(worker, ring),
                .has_incarnation = incarnations.incarnation_of(ring).has_value(),
                .is_patient = frame::elapsed_ns(state.news_at_ns, now.ns) <=
                              spec.patience_ms * frame::kNsPerMs,
                .held = state.slots.held() + incarnations.waiting_hellos_of(ring).size(),
                .filling = state.slots.filling()};
  if (const auto& since = incarnations.draining_since(ring)) {
    life.draining_since_ns = *since * frame::kNsPerMs;
  }
  life.waited_for = state.late_senders();
  for (std::uint16_t child = 0; child < state.slots.children(); ++child) {
    if (is_acknowledgement_due(incarnations.flow_of({ring, child}),
                               frame::elapsed_ns(life.heard_ns, now.ns))) {
      life.unacknowledged.push_back(child);
    }
  }
  return life;
}

} // namespace weir::stage
