// SPDX-License-Identifier: BSD-3-Clause
#include "stage/emit.hpp"

#include "op/collectives.hpp"
#include "slot/result_packet.hpp"
#include "stage/graph_watch.hpp"

#include <algorithm>
#include <thread>

namespace weir::stage {

using Entry = slot::ReductionQueue::Entry;

static_assert(op::all_collectives_have(&op::CollectiveRow::receives, op::Who::everybody),
              "the result goes to every child: its own packet is what carries it");

Emit::Emit(const ring::CurrentRings& current, const conn::Classifier& classifier, RingStates& rings,
           slot::ReductionQueue& reductions, Forward& forward)
    : current_(current), classifier_(classifier), rings_(rings), reductions_(reductions),
      forward_(forward) {}

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
    frames += send_results(entry, now);
  }
  return frames;
}

void Emit::make_room(frame::Instant now) {
  finish(reductions_.at(0), now);
  reductions_.remove_oldest();
}

unsigned Emit::send_results(Entry& entry, frame::Instant now) {
  RingState& ring = *rings_[entry.record.ring];
  const auto frames = entry.reduction.task().frames;
  const slot::SlotResult result = ring.slots.complete(entry.slot, entry.reduction.crc());
  ++ring.counters.slots_completed;
  ring.counters.hellos += entry.collective == Collective::hello ? 1 : 0;
  ring.counters.results += frames.size();
  ring.counters.reduced_bytes += frames.size() * result.data.size();
  ring.counters.slot_time_ns.add(now.ns - ring.slots.first_arrival_of(entry.slot));
  for (std::uint16_t child = 0; child < frames.size(); ++child) {
    entry.record.child = child;
    passes<StageId::emit, StageId::forward>();
    forward_.send(*frames[child], frame::Departure::consumed, now, entry.record,
                  classifier_.ports().receiver_port_of({entry.record.ring, child}));
  }
  entry.has_left = true;
  return static_cast<unsigned>(frames.size());
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
  send_results(entry, now);
}

bool Emit::has_result_on_connection_of(const frame::Frame& frame, const Entry& entry) const {
  if (entry.has_left) {
    return false;
  }
  const auto senders = current_->senders(frame.pair);
  return std::any_of(senders.begin(), senders.end(), [&](const ring::RingChild& sender) {
    return sender.ring == entry.record.ring &&
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
      return drain_ring(entry.record.ring, now);
    }
  }
}

void Emit::drain_ring(std::uint16_t ring, frame::Instant now) {
  for (std::uint32_t place = 0; place < reductions_.size(); ++place) {
    if (reductions_.at(place).record.ring == ring) {
      finish(reductions_.at(place), now);
    }
  }
}

void Emit::send_in_turn(frame::Frame& frame, frame::Departure departure, frame::Instant now,
                        const frame::TraceRecord& record) {
  drain_connection_of(frame, now);
  passes<StageId::emit, StageId::forward>();
  forward_.send(frame, departure, now, record, classifier_.ports().destination_of(frame.pair));
}

void Emit::answer_from_cache(frame::Frame& frame, const conn::Verdict& verdict, std::uint32_t slot,
                             frame::Instant now) {
  RingState& ring = *rings_[verdict.ring];
  ++ring.counters.cached_results;
  slot::write_result(frame, ring.slots.result_of(slot), classifier_.session_of(verdict.ring));
  send_in_turn(frame, frame::Departure::consumed, now,
               ring_record(frame::TraceEvent::cached_result, verdict));
}

void Emit::forward_stale(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now) {
  ++rings_[verdict.ring]->counters.stale_repeats;
  frame.traffic = frame::TrafficClass::ring; // like the results on its connection
  send_in_turn(
      frame, frame::Departure::forwarded, now,
      {.ring = verdict.ring, .child = verdict.child, .event = frame::TraceEvent::stale_repeat});
}

} // namespace weir::stage
