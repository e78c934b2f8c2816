// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "slot/result_packet.hpp"
#include "stage/recover.hpp"
#include "stage/reduce.hpp"
#include "wire/icrc.hpp"

namespace weir::stage {

class Pipeline;

/// The contribution of a packet that was classified as one.
[[gnu::always_inline]] inline slot::Contribution
contribution_of(const wire::Packet& packet, const conn::Verdict& verdict, frame::Instant now) {
  return {.slot = verdict.record->first_slot + verdict.packet,
          .message = verdict.record->message,
          .child = verdict.child,
          .shape = verdict.record->shape,
          .data_bytes = static_cast<std::uint32_t>(packet.payload_bytes - slot::ina_bytes(packet)),
          .now = now.ns};
}

/// Holds contributions in their slots until every child's is there.
class Aggregate {
 public:
  explicit Aggregate(Pipeline& pipeline);

  [[gnu::always_inline]] void accept(frame::Frame& frame, const conn::Verdict& verdict,
                                     frame::Instant now) {
    if (!wire::verify_icrc(frame)) [[unlikely]] {
      return drop(frame, verdict.ring, DropReason::bad_icrc, now);
    }
    RingState& ring = *rings_[verdict.ring];
    const slot::SlotEvent event =
        ring.slots.arrive(contribution_of(frame.packet, verdict, now), &frame);
    if (event != slot::SlotEvent::stored) [[unlikely]] {
      return accept_event(event, frame, verdict, now);
    }
    ++ring.counters.contributions;
    recover_.came(frame, verdict, now);
    forward_.note(frame, now, [&] { return ring_record(frame::TraceEvent::held, verdict); });
  }

  /// A total from the switch above.
  void accept_total(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now);

  /// As accept() for a verified packet inside a message, behind one that was stored in this instant
  /// on the same connection of the ring. Nobody watches.
  [[gnu::always_inline]] void accept_next(frame::Frame& frame, const conn::Verdict& verdict,
                                          const slot::Contribution& contribution, RingState& ring,
                                          frame::Instant now) {
    const slot::SlotEvent event = ring.slots.arrive(contribution, &frame);
    if (event != slot::SlotEvent::stored) [[unlikely]] {
      return accept_event(event, frame, verdict, now);
    }
    ++ring.counters.contributions;
    verdict.flow->came_next(frame.packet.psn);
  }

  /// Drops the frames that the ring holds.
  void flush(std::uint16_t ring, DropReason reason, frame::Instant now);

  /// Results that are ready leave. A helper may be using some of the frames until then.
  void settle(std::uint16_t ring, frame::Instant now);

  /// Drops what at most so many slots of a withdrawn ring hold. True if there is more.
  bool drop_some(RingState& withdrawn, std::size_t slots, frame::Instant now);

 private:
  void accept_event(slot::SlotEvent event, frame::Frame& frame, const conn::Verdict& verdict,
                    frame::Instant now);
  void drop(frame::Frame& frame, std::uint16_t ring, DropReason reason, frame::Instant now);

  RingStates& rings_;
  Reduce& reduce_;
  Emit& emit_;
  Recover& recover_;
  Forward& forward_;
};

} // namespace weir::stage
