// SPDX-License-Identifier: BSD-3-Clause
#include "stage/classify.hpp"

#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"

namespace weir::stage {

using conn::Verdict;

namespace {

/// False for acknowledgements, responses and CNPs. They belong to the opposite direction's
/// connection, or to none, so they wait for nothing.
bool takes_its_turn(const frame::Frame& frame) {
  return frame.packet.opcode.position != wire::Position::none;
}

frame::TraceRecord hello_record(frame::TraceEvent event, const Verdict& verdict) {
  return {.ring = verdict.ring, .child = verdict.child, .event = event};
}

} // namespace

Classify::Classify(Pipeline& pipeline)
    : current_(pipeline.state.current), classifier_(pipeline.state.classifier),
      incarnations_(pipeline.state.incarnations), refused_(pipeline.state.refused),
      rings_(pipeline.state.rings), bridge_(pipeline.state.bridge),
      flow_cache_(pipeline.state.flow_cache), aggregate_(pipeline.aggregate), emit_(pipeline.emit),
      recover_(pipeline.recover), climb_(pipeline.climb), timers_(pipeline.timers),
      forward_(pipeline.state.forward), peers_(pipeline.state.peers),
      counters_(pipeline.state.counters) {}

void Classify::accept(frame::Frame& frame, frame::Instant now) {
  const Verdict verdict = classifier_.classify(frame, now.ms());
  if (incarnations_.has_given_up()) [[unlikely]] {
    drop_given_up_hellos(now);
  }
  if (verdict.foreign) {
    counters_.count(*verdict.foreign);
  }
  switch (verdict.step) {
  case Verdict::Step::forward:
    return forward(frame, now);
  case Verdict::Step::interleave:
    return interleave(frame, {verdict.ring, verdict.child}, now);
  case Verdict::Step::repeat:
    passes<StageId::classify, StageId::recover>();
    return recover_.swallow(frame, verdict, now);
  case Verdict::Step::gap:
    passes<StageId::classify, StageId::recover>();
    return recover_.came_without_first(frame, verdict, now);
  case Verdict::Step::elsewhere:
    passes<StageId::classify, StageId::queue>();
    return peers_->to_worker_of(verdict.ring, frame, now);
  case Verdict::Step::refuse:
    ++rings_[verdict.ring]->counters.dropped[static_cast<std::size_t>(verdict.drop)];
    [[fallthrough]];
  case Verdict::Step::drop:
    refused_.note(*current_, frame, verdict.drop, now.ns);
    recover_.tell_if_ended(frame, now);
    return forward_.drop<StageId::classify>(frame, verdict.drop, now);
  case Verdict::Step::contribute:
    flow_cache_.learn(frame, verdict,
                      incarnations_.live_connection_of({verdict.ring, verdict.child}),
                      rings_[verdict.ring]->slots, now.ms());
    passes<StageId::classify, StageId::aggregate>();
    return aggregate_.accept(frame, verdict, now);
  case Verdict::Step::total:
    passes<StageId::classify, StageId::aggregate>();
    return aggregate_.accept_total(frame, verdict, now);
  case Verdict::Step::climb:
    forward_.note(frame, now, [&] { return hello_record(frame::TraceEvent::climbs, verdict); });
    timers_.expect_hello({verdict.ring, verdict.child}, now);
    passes<StageId::classify, StageId::climb>();
    return climb_.send(verdict.ring, now);
  case Verdict::Step::descend:
    forward_.note(frame, now, [&] { return hello_record(frame::TraceEvent::begins, verdict); });
    return begin_below({verdict.ring, verdict.child}, frame, now);
  case Verdict::Step::wait:
    timers_.expect_hello({verdict.ring, verdict.child}, now);
    return forward_.note(frame, now,
                         [&] { return hello_record(frame::TraceEvent::waits, verdict); });
  case Verdict::Step::begin:
    forward_.note(frame, now, [&] { return hello_record(frame::TraceEvent::begins, verdict); });
    return begin_incarnation(verdict.ring, now);
  }
}

void Classify::forward(frame::Frame& frame, frame::Instant now) {
  if (takes_its_turn(frame)) {
    passes<StageId::classify, StageId::emit>();
    return emit_.send_in_turn(frame, frame::Departure::forwarded, now);
  }
  passes<StageId::classify, StageId::recover>();
  recover_.accept_response(frame, now);
}

/// A plain message on a ring's connection may not overtake results that wait for their turn, nor
/// leave a gap (protocol I7).
void Classify::interleave(frame::Frame& frame, const ring::RingChild& sender, frame::Instant now) {
  emit_.drain_ring(sender.ring, now);
  recovery::Flow& flow = incarnations_.flow_of(sender);
  const std::uint32_t psn = frame.packet.psn;
  if (wire::psn_before(flow.next_out, psn)) {
    return forward_.drop<StageId::classify>(frame, DropReason::out_of_turn, now);
  }
  if (psn == flow.next_out) {
    rings_[sender.ring]->leaves(flow, psn, now.ns);
  }
  passes<StageId::classify, StageId::emit>();
  emit_.send_in_turn(frame, frame::Departure::forwarded, now);
}

/// Drops what the old incarnation holds; then the hellos contribute to slot 0.
void Classify::begin_incarnation(std::uint16_t ring, frame::Instant now) {
  flush(ring, DropReason::incarnation_flush, now);
  recover_.take_leave(ring, kTakenOver, now);
  const auto hellos = incarnations_.begin(ring, now.ms());
  drop_given_up_hellos(now);
  take_hellos(ring, hellos, now);
}

/// The same when the switch above has begun the incarnation: what it sent completes message 0.
void Classify::begin_below(const ring::RingChild& parent, frame::Frame& total, frame::Instant now) {
  flush(parent.ring, DropReason::incarnation_flush, now);
  recover_.take_leave(parent.ring, kTakenOver, now);
  const auto hellos = incarnations_.begin_below(total, parent, now.ms());
  drop_given_up_hellos(now);
  take_hellos(parent.ring, hellos, now);
  emit_.drain_ring(parent.ring, now); // a helper may have the hellos' reduction
  recover_.begin(parent, total, now);
  passes<StageId::classify, StageId::aggregate>();
  aggregate_.accept_total(total, incarnations_.hello_verdict(parent), now);
}

void Classify::take_hellos(std::uint16_t ring, std::span<frame::Frame* const> hellos,
                           frame::Instant now) {
  for (std::uint16_t child = 0; child < hellos.size(); ++child) {
    // Behind another switch the host has no port of this one.
    if (current_->rings()[ring].is_rank(child)) {
      rings_[ring]->pins[child] =
          bridge_.pin_source(hellos[child]->bytes(), hellos[child]->ingress, now.ms());
    }
    recover_.begin({ring, child}, *hellos[child], now);
    passes<StageId::classify, StageId::aggregate>();
    aggregate_.accept(*hellos[child], incarnations_.hello_verdict({ring, child}), now);
  }
}

void Classify::flush(std::uint16_t ring, DropReason reason, frame::Instant now) {
  aggregate_.flush(ring, reason, now);
  end_connections(ring, now);
}

void Classify::end_connections(std::uint16_t ring, frame::Instant now) {
  recover_.end(ring);
  for (std::optional<l2::Pin>& pin : rings_[ring]->pins) {
    if (pin) {
      bridge_.unpin(*pin, now.ms());
      pin.reset();
    }
  }
}

void Classify::update_ports(std::uint16_t ring, frame::Instant now) {
  incarnations_.update_ports(ring);
  drop_given_up_hellos(now);
  for (std::uint16_t child = 0; child < rings_[ring]->pins.size(); ++child) {
    std::optional<l2::Pin>& pin = rings_[ring]->pins[child];
    const auto port = incarnations_.ports().port_of({ring, child});
    if (pin && port && pin->port != *port) {
      pin = bridge_.move(*pin, *port, now.ms());
    }
  }
}

void Classify::reset_ring(std::uint16_t ring, frame::Instant now) {
  reset_ring(ring, DropReason::ring_reset, kGivenUp, now);
}

void Classify::end_disagreeing(std::uint16_t ring, frame::Instant now) {
  recover_.refuse_all(ring, now);
  reset_ring(ring, DropReason::operator_disagrees, kDisagreed, now);
}

void Classify::reset_ring(std::uint16_t ring, DropReason reason, wire::NakCode why,
                          frame::Instant now) {
  flush(ring, reason, now);
  recover_.take_leave(ring, why, now);
  incarnations_.reset(ring);
  drop_given_up_hellos(now);
}

void Classify::drain_ring(std::uint16_t ring, frame::Instant now) {
  incarnations_.drain(ring, now.ms());
  drop_given_up_hellos(now);
}

/// A ring that was made for one run has an owner, who hears of it and tells the ranks what it was.
conn::RingConnections Classify::withdraw_ring(std::uint16_t ring, frame::Instant now) {
  aggregate_.settle(ring, now);
  end_connections(ring, now);
  if (current_->rings()[ring].spec().nonce == 0) {
    recover_.take_leave(ring, kGivenUp, now);
  }
  conn::RingConnections state = incarnations_.withdraw(ring);
  drop_given_up_hellos(now);
  return state;
}

void Classify::drop_given_up_hellos(frame::Instant now) {
  for (const conn::GivenUp& hello : incarnations_.take_given_up()) {
    ++rings_[hello.ring]->counters.dropped[static_cast<std::size_t>(hello.reason)];
    forward_.drop<StageId::classify>(*hello.frame, hello.reason, now);
  }
}

} // namespace weir::stage
