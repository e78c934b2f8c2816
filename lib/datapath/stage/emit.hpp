// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/incarnations.hpp"
#include "slot/reduction_queue.hpp"
#include "stage/fair_queue.hpp"
#include "stage/forward.hpp"
#include "stage/ring_state.hpp"
#include "stage/schedule.hpp"

namespace weir::stage {

class Pipeline;

/// Sends the results of a ring in the order of message and packet, and other frames of its
/// connections in turn after them (protocol I7).
class Emit {
 public:
  explicit Emit(Pipeline& pipeline);

  /// Takes the reductions that are made and sends the results that are due. Returns the number of
  /// frames sent, but at least one while a reduction must be waited for.
  unsigned collect(frame::Instant now);

  /// Makes a free place in a full queue of reductions.
  void make_room(frame::Instant now);

  /// Sends a frame that is no result, after the results before it on its connection.
  void send_in_turn(frame::Frame& frame, frame::Departure departure, frame::Instant now,
                    const frame::TraceRecord& record = Forward::kForwarded);
  /// Answers a repeat of a packet whose slot is complete.
  void answer_from_cache(frame::Frame& frame, const conn::Verdict& verdict, std::uint32_t slot,
                         frame::Instant now);

  /// The total of the verdict's packet has come from the switch above. Sends those that are due.
  void accept_total(const conn::Verdict& verdict, frame::Instant now);

  /// Sends every result that is due. Makes the reductions that nobody has begun.
  void drain_ring(std::uint16_t ring, frame::Instant now);

 private:
  enum class AckRequest : std::uint8_t { as_sent, yes };

  [[gnu::noinline]] void count_special(const slot::ReductionQueue::Entry& entry, RingState& ring,
                                       frame::Instant now);
  unsigned take_result(slot::ReductionQueue::Entry& entry, frame::Instant now);
  unsigned release_due(std::uint16_t ring, frame::Instant now);
  unsigned release_partial_sums(std::uint16_t ring, frame::Instant now);
  void send_partial_sum(std::uint16_t ring, const Due& due, AckRequest ack_request,
                        frame::Instant now);
  void send_total(std::uint16_t ring, const Due& due, AckRequest ack_request, frame::Instant now);
  void send_sum(frame::Frame& frame, const ring::RingChild& sender,
                const frame::TraceRecord& record, frame::Instant now);
  [[gnu::always_inline]] static inline void request_acknowledgement(frame::Frame& frame,
                                                                    AckRequest ack_request);
  unsigned send_results(std::uint16_t ring, const Due& due, AckRequest ack_request,
                        frame::Instant now);
  static void leave(frame::Frame& frame, RingState& ring, recovery::Flow& flow,
                    AckRequest ack_request, frame::Instant now);
  void finish(slot::ReductionQueue::Entry& entry, frame::Instant now);
  bool has_result_on_connection_of(const frame::Frame& frame,
                                   const slot::ReductionQueue::Entry& entry) const;
  void drain_connection_of(const frame::Frame& frame, frame::Instant now);

  const ring::CurrentRings& current_;
  FairQueue& lines_;
  conn::Incarnations& incarnations_;
  RingStates& rings_;
  slot::ReductionQueue& reductions_;
  Schedule& schedule_;
  Forward& forward_;
};

/// The trace record of a packet of a ring's message.
inline frame::TraceRecord ring_record(frame::TraceEvent event, const conn::Verdict& verdict) {
  return {.message = verdict.record->message,
          .packet = verdict.packet,
          .ring = verdict.ring,
          .child = verdict.child,
          .event = event};
}

} // namespace weir::stage
