// SPDX-License-Identifier: BSD-3-Clause
#include "stage/emit.hpp"

#include "op/collectives.hpp"
#include "program/operator.hpp"
#include "slot/result_packet.hpp"
#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"
#include "wire/crc32.hpp"
#include "wire/icrc.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <thread>

namespace weir::stage {

using ring::RingChild;
using Entry = slot::ReductionQueue::Entry;

static_assert(op::all_collectives_have(&op::CollectiveRow::receives, op::Who::everybody),
              "the result goes to every child: its own packet is what carries it");

Emit::Emit(Pipeline& pipeline)
    : current_(pipeline.state.current), lines_(pipeline.state.lines),
      incarnations_(pipeline.state.incarnations), rings_(pipeline.state.rings),
      reductions_(pipeline.state.reductions), schedule_(pipeline.state.schedule),
      forward_(pipeline.state.forward) {}

unsigned Emit::collect(frame::Instant now) {
  unsigned frames = 0;
  for (; !reductions_.is_empty(); reductions_.remove_oldest()) {
    Entry& entry = reductions_.at(0);
    if (entry.has_left) {
      continue;
    }
    if (!entry.reduction.is_made()) {
      return frames + 1;
    }
    frames += take_result(entry, now);
  }
  return frames;
}

void Emit::make_room(frame::Instant now) {
  finish(reductions_.at(0), now);
  reductions_.remove_oldest();
}

/// The slot's result is there. It leaves when all before it have left.
unsigned Emit::take_result(Entry& entry, frame::Instant now) {
  RingState& ring = *rings_[entry.ring];
  assert(!entry.has_left && entry.reduction.is_made());
  const auto frames = entry.reduction.task().frames.size();
  ring.slots.make_ready(entry.slot, entry.reduction.crc());
  ++ring.counters.slots_completed;
  if (entry.kind != slot::ReductionKind::usual) [[unlikely]] {
    count_special(entry, ring, now);
  }
  ring.counters.reduced_bytes += frames * entry.reduction.task().result.size();
  ring.counters.slot_time_ns.add(now.ns - ring.slots.first_arrival_of(entry.slot));
  entry.has_left = true;
  return release_due(entry.ring, now);
}

/// What its kernel has found out about itself ends the incarnation when the ring's timer comes.
void Emit::count_special(const Entry& entry, RingState& ring, frame::Instant now) {
  if (entry.kind == slot::ReductionKind::hello) {
    ++ring.counters.hellos;
    return;
  }
  const slot::Reduction::Task& task = entry.reduction.task();
  lines_.charge_work(current_->ring_group_of(entry.ring),
                     entry.by->measured_ns(task.frames.size(), task.result.size()));
  ++ring.counters.by_operator;
  ring.counters.flagged += entry.by->count(task.result) ? 1 : 0;
  if (incarnations_.has_failing_operator(entry.ring)) {
    schedule_.expect(entry.ring, now.ns);
  }
}

unsigned Emit::release_due(std::uint16_t index, frame::Instant now) {
  RingState& ring = *rings_[index];
  if (!ring.is_root) [[unlikely]] {
    return release_partial_sums(index, now);
  }
  unsigned frames = 0;
  while (ring.is_due_ready()) {
    const Due leaving = ring.due;
    ring.advance(ring.due, ring.slots.frames_of(leaving.slot()).front()->packet.opcode, now.ns);
    ring.slots.load_state(ring.due.slot());
    // Behind a gap nothing may leave for a while: let the receivers say what they have.
    const bool is_last = ring.gaps != 0 && !ring.is_due_ready();
    frames += send_results(index, leaving, is_last ? AckRequest::yes : AckRequest::as_sent, now);
  }
  return frames;
}

unsigned Emit::send_results(std::uint16_t index, const Due& due, AckRequest ack_request,
                            frame::Instant now) {
  RingState& ring = *rings_[index];
  const auto frames = ring.slots.release(due.slot());
  ring.counters.results += frames.size();
  const std::span<recovery::Flow> flows = incarnations_.flows_of(index);
  assert(flows.size() >= frames.size());
  schedule_.expect(index, now.ns + recovery::kTimerFloor);
  forward_.send_results(
      frames, incarnations_.ports().receiver_ports_of(index), now,
      [&](std::size_t child) {
        leave(*frames[child], ring, flows[child], ack_request, now);
        passes<StageId::emit, StageId::forward>();
      },
      [&](std::size_t child) {
        return frame::TraceRecord{.message = due.message,
                                  .packet = due.packet,
                                  .ring = index,
                                  .child = static_cast<std::uint16_t>(child),
                                  .event = frame::TraceEvent::result};
      });
  return static_cast<unsigned>(frames.size());
}

void Emit::request_acknowledgement(frame::Frame& frame, AckRequest ack_request) {
  auto& bth = wire::view_as<wire::Bth>(frame.data + frame.packet.bth_offset);
  if (ack_request == AckRequest::yes && (bth.ack_request & wire::kAckRequest) == 0) [[unlikely]] {
    bth.ack_request |= wire::kAckRequest;
    wire::store_icrc(frame, wire::compute_icrc(frame));
  }
}

/// docs/protocol.md §11.4: the sums of a switch with a parent leave in order too, up and down.
unsigned Emit::release_partial_sums(std::uint16_t index, frame::Instant now) {
  RingState& ring = *rings_[index];
  unsigned sums = 0;
  for (; ring.is_due_ready(); ++sums) {
    const Due leaving = ring.due;
    ring.advance(ring.due, ring.slots.frames_of(leaving.slot()).back()->packet.opcode, now.ns);
    const bool is_last = ring.gaps != 0 && !ring.is_due_ready();
    send_partial_sum(index, leaving, is_last ? AckRequest::yes : AckRequest::as_sent, now);
  }
  return sums;
}

void Emit::accept_total(const conn::Verdict& verdict, frame::Instant now) {
  RingState& ring = *rings_[verdict.ring];
  while (ring.is_total_due_known()) {
    const Due leaving = ring.total_due;
    const frame::Frame& total = *ring.slots.total_frames_of(leaving.slot()).total;
    ring.advance(ring.total_due, total.packet.opcode, now.ns);
    const bool is_last = ring.gaps != 0 && !ring.is_total_due_known();
    send_total(verdict.ring, leaving, is_last ? AckRequest::yes : AckRequest::as_sent, now);
  }
}

/// The sum of a hello has climbed already, or the switch above would not have begun.
void Emit::send_partial_sum(std::uint16_t index, const Due& due, AckRequest ack_request,
                            frame::Instant now) {
  RingState& ring = *rings_[index];
  const RingChild last{index, static_cast<std::uint16_t>(ring.slots.children() - 1u)};
  frame::Frame& frame = ring.slots.release_partial(due.slot());
  schedule_.expect(index, now.ns + recovery::kTimerFloor);
  if (ring.slots.shape_of(due.slot()).collective == Collective::hello) {
    ring.leaves(incarnations_.flow_of(last), frame.packet.psn, now.ns);
    return forward_.consume(frame);
  }
  ++ring.counters.partial_sums;
  ring.sum_timer.leaves(due.slot(), now.ns);
  slot::seal_sum(frame, ring.slots.partial_of(due.slot()), incarnations_.stamp_for(last));
  request_acknowledgement(frame, ack_request);
  // Not timed: it is acknowledged when all other racks have computed.
  ring.leaves(incarnations_.flow_of(last), frame.packet.psn, now.ns);
  send_sum(frame, last,
           {.message = due.message,
            .packet = due.packet,
            .ring = index,
            .child = last.child,
            .event = frame::TraceEvent::partial_sum},
           now);
}

/// To the first child in the frame from above, and to the others in the frames that were held.
void Emit::send_total(std::uint16_t index, const Due& due, AckRequest ack_request,
                      frame::Instant now) {
  RingState& ring = *rings_[index];
  const auto [held, total] = ring.slots.total_frames_of(due.slot());
  const std::span room = ring.slots.total_room(due.slot());
  if (!room.empty()) {
    std::memcpy(room.data(), total->payload() + slot::ina_bytes(total->packet), room.size());
  }
  const std::uint32_t crc = wire::crc32(0, room);
  ring.slots.release_total(due.slot(), crc);
  ring.counters.results += held.size() + 1;
  const auto record = [&](std::uint16_t sender) {
    return frame::TraceRecord{.message = due.message,
                              .packet = due.packet,
                              .ring = index,
                              .child = sender,
                              .event = frame::TraceEvent::result};
  };
  const RingChild parent{index, ring.slots.children()};
  slot::seal_sum(*total, {room, crc}, incarnations_.stamp_for(parent));
  leave(*total, ring, incarnations_.flow_of(parent), ack_request, now);
  send_sum(*total, parent, record(parent.child), now);
  for (std::uint16_t child = 0; child < held.size(); ++child) {
    slot::write_result(*held[child], {room, crc}, incarnations_.session_of(index));
    leave(*held[child], ring, incarnations_.flow_of({index, child}), ack_request, now);
    send_sum(*held[child], {index, child}, record(child), now);
  }
}

void Emit::send_sum(frame::Frame& frame, const RingChild& sender, const frame::TraceRecord& record,
                    frame::Instant now) {
  passes<StageId::emit, StageId::forward>();
  forward_.send(frame, frame::Departure::consumed, now, record,
                incarnations_.ports().receiver_port_of(sender));
}

/// Takes down that the result leaves, and makes it ask for an acknowledgement.
void Emit::leave(frame::Frame& frame, RingState& ring, recovery::Flow& flow, AckRequest ack_request,
                 frame::Instant now) {
  const auto& bth = wire::view_as<wire::Bth>(frame.data + frame.packet.bth_offset);
  request_acknowledgement(frame, ack_request);
  ring.leaves(flow, frame.packet.psn, now.ns);
  if ((bth.ack_request & wire::kAckRequest) != 0) {
    flow.time(frame.packet.psn, now.ns);
  }
}

void Emit::finish(Entry& entry, frame::Instant now) {
  if (entry.has_left) {
    return;
  }
  if (!entry.reduction.make()) {
    while (!entry.reduction.is_made()) { // a helper is making it
      std::this_thread::yield();
    }
  }
  take_result(entry, now);
}

bool Emit::has_result_on_connection_of(const frame::Frame& frame, const Entry& entry) const {
  if (entry.has_left) {
    return false;
  }
  const auto senders = current_->senders(frame.pair);
  return std::any_of(senders.begin(), senders.end(), [&](const ring::RingChild& sender) {
    return sender.ring == entry.ring && sender.child < entry.reduction.task().frames.size() &&
           entry.reduction.task().frames[sender.child]->packet.destination_qp ==
               frame.packet.destination_qp;
  });
}

/// A connection belongs to one ring, so the first reduction with a result on it names the ring.
/// Results of other rings are not sent.
void Emit::drain_connection_of(const frame::Frame& frame, frame::Instant now) {
  for (std::uint32_t place = reductions_.size(); place > 0; --place) {
    const Entry& entry = reductions_.at(place - 1);
    if (has_result_on_connection_of(frame, entry)) {
      return drain_ring(entry.ring, now);
    }
  }
}

void Emit::drain_ring(std::uint16_t ring, frame::Instant now) {
  for (std::uint32_t place = 0; place < reductions_.size(); ++place) {
    if (reductions_.at(place).ring == ring) {
      finish(reductions_.at(place), now);
    }
  }
}

void Emit::send_in_turn(frame::Frame& frame, frame::Departure departure, frame::Instant now,
                        const frame::TraceRecord& record) {
  drain_connection_of(frame, now);
  passes<StageId::emit, StageId::forward>();
  forward_.send(frame, departure, now, record, incarnations_.ports().destination_of(frame.pair));
}

void Emit::answer_from_cache(frame::Frame& frame, const conn::Verdict& verdict, std::uint32_t slot,
                             frame::Instant now) {
  RingState& ring = *rings_[verdict.ring];
  ++ring.counters.cached_results;
  forward_.note(frame, now, [&] { return ring_record(frame::TraceEvent::repeated, verdict); });
  const RingChild sender{verdict.ring, verdict.child};
  const ring::Leg leg = current_->rings()[sender.ring].leg_of(sender.child);
  slot::write_sum(frame, ring.cached_sum(leg, slot), incarnations_.stamp_for(sender));
  send_in_turn(frame, frame::Departure::consumed, now,
               ring_record(frame::TraceEvent::cached_result, verdict));
}

} // namespace weir::stage
