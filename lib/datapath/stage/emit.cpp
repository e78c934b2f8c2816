// SPDX-License-Identifier: BSD-3-Clause
#include "stage/emit.hpp"

#include "op/collectives.hpp"
#include "slot/result_packet.hpp"
#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"
#include "wire/icrc.hpp"

#include <algorithm>
#include <thread>

namespace weir::stage {

using Entry = slot::ReductionQueue::Entry;

static_assert(op::all_collectives_have(&op::CollectiveRow::receives, op::Who::everybody),
              "the result goes to every child: its own packet is what carries it");

Emit::Emit(Pipeline& pipeline)
    : current_(pipeline.state.current), incarnations_(pipeline.state.incarnations),
      rings_(pipeline.state.rings), reductions_(pipeline.state.reductions),
      schedule_(pipeline.state.schedule), forward_(pipeline.state.forward) {}

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
  const auto frames = entry.reduction.task().frames.size();
  ring.slots.make_ready(entry.slot, entry.reduction.crc());
  ++ring.counters.slots_completed;
  ring.counters.hellos += entry.collective == Collective::hello ? 1 : 0;
  ring.counters.reduced_bytes += frames * entry.reduction.task().result.size();
  ring.counters.slot_time_ns.add(now.ns - ring.slots.first_arrival_of(entry.slot));
  entry.has_left = true;
  return release_due(entry.ring, now);
}

unsigned Emit::release_due(std::uint16_t index, frame::Instant now) {
  RingState& ring = *rings_[index];
  unsigned frames = 0;
  while (ring.is_due_ready()) {
    const Due leaving = ring.due;
    ring.advance_due(ring.slots.frames_of(leaving.slot()).front()->packet.opcode, now.ns);
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

/// Takes down that the result leaves, and makes it ask for an acknowledgement.
void Emit::leave(frame::Frame& frame, RingState& ring, recovery::Flow& flow, AckRequest ack_request,
                 frame::Instant now) {
  auto& bth = wire::view_as<wire::Bth>(frame.data + frame.packet.bth_offset);
  if (ack_request == AckRequest::yes && (bth.ack_request & wire::kAckRequest) == 0) [[unlikely]] {
    bth.ack_request |= wire::kAckRequest;
    wire::store_icrc(frame, wire::compute_icrc(frame));
  }
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
    return sender.ring == entry.ring &&
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
  slot::write_result(frame, ring.slots.result_of(slot), incarnations_.session_of(verdict.ring));
  send_in_turn(frame, frame::Departure::consumed, now,
               ring_record(frame::TraceEvent::cached_result, verdict));
}

} // namespace weir::stage
