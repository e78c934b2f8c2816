// SPDX-License-Identifier: BSD-3-Clause
#include "stage/aggregate.hpp"

#include "op/collectives.hpp"
#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"

namespace weir::stage {

using slot::SlotEvent;

namespace {

static_assert(op::all_collectives_have(&op::CollectiveRow::completes, op::Who::everybody),
              "a slot is complete when every child's packet is there");

DropReason reason_for(SlotEvent event) {
  switch (event) {
  case SlotEvent::repeat_held:
    return DropReason::repeat_held;
  case SlotEvent::stale:
    return DropReason::stale_repeat;
  case SlotEvent::total_early:
    return DropReason::total_early;
  case SlotEvent::window_violation:
    return DropReason::window_violation;
  case SlotEvent::disagree_operation:
    return DropReason::disagree_operation;
  case SlotEvent::disagree_type:
    return DropReason::disagree_type;
  case SlotEvent::disagree_length:
    return DropReason::disagree_length;
  case SlotEvent::disagree_collective:
    return DropReason::disagree_collective;
  case SlotEvent::disagree_root:
    return DropReason::disagree_root;
  default:
    return DropReason::disagree_payload;
  }
}

} // namespace

Aggregate::Aggregate(Pipeline& pipeline)
    : rings_(pipeline.state.rings), reduce_(pipeline.reduce), emit_(pipeline.emit),
      recover_(pipeline.recover), forward_(pipeline.state.forward) {}

void Aggregate::accept_total(frame::Frame& frame, const conn::Verdict& verdict,
                             frame::Instant now) {
  if (!wire::verify_icrc(frame)) {
    return drop(frame, verdict.ring, DropReason::bad_icrc, now);
  }
  RingState& ring = *rings_[verdict.ring];
  const SlotEvent event =
      ring.slots.arrive_total(contribution_of(frame.packet, verdict, now), &frame);
  if (event != SlotEvent::total) {
    return accept_event(event, frame, verdict, now);
  }
  ++ring.counters.totals;
  if (const auto ns =
          ring.sum_timer.comes_back(verdict.record->first_slot + verdict.packet, now.ns)) {
    ring.counters.total_time_ns.add(*ns);
  }
  recover_.came(frame, verdict, now);
  forward_.note(frame, now, [&] { return ring_record(frame::TraceEvent::total, verdict); });
  passes<StageId::aggregate, StageId::emit>();
  emit_.accept_total(verdict, now);
}

void Aggregate::accept_event(SlotEvent event, frame::Frame& frame, const conn::Verdict& verdict,
                             frame::Instant now) {
  const std::uint32_t slot = verdict.record->first_slot + verdict.packet;
  switch (event) {
  case SlotEvent::completed:
    ++rings_[verdict.ring]->counters.contributions;
    recover_.came(frame, verdict, now);
    forward_.note(frame, now, [&] { return ring_record(frame::TraceEvent::completed, verdict); });
    passes<StageId::aggregate, StageId::reduce>();
    return reduce_.accept(verdict, slot, now);
  case SlotEvent::repeat_complete:
    passes<StageId::aggregate, StageId::emit>();
    return emit_.answer_from_cache(frame, verdict, slot, now);
  case SlotEvent::repeat_held:
    recover_.came_again(frame, verdict, now);
    return drop(frame, verdict.ring, DropReason::repeat_held, now);
  default:
    return drop(frame, verdict.ring, reason_for(event), now);
  }
}

void Aggregate::flush(std::uint16_t ring, DropReason reason, frame::Instant now) {
  settle(ring, now);
  rings_[ring]->slots.flush([&](frame::Frame& frame) { drop(frame, ring, reason, now); });
}

void Aggregate::settle(std::uint16_t ring, frame::Instant now) {
  emit_.drain_ring(ring, now);
  ++rings_[ring]->counters.flushes;
}

bool Aggregate::drop_some(RingState& withdrawn, std::size_t slots, frame::Instant now) {
  withdrawn.slots.flush_some(slots, [&](frame::Frame& frame) {
    forward_.drop<StageId::aggregate>(frame, DropReason::ring_withdrawn, now);
  });
  return withdrawn.slots.held() != 0;
}

void Aggregate::drop(frame::Frame& frame, std::uint16_t ring, DropReason reason,
                     frame::Instant now) {
  ++rings_[ring]->counters.dropped[static_cast<std::size_t>(reason)];
  forward_.drop<StageId::aggregate>(frame, reason, now);
}

} // namespace weir::stage
