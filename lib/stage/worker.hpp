// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/classify.hpp"
#include "frame/frame.hpp"
#include "l2/bridge.hpp"
#include "slot/reduction_queue.hpp"
#include "slot/result_packet.hpp"
#include "slot/slot_table.hpp"
#include "stage/forward.hpp"

#include <array>
#include <memory_resource>
#include <optional>
#include <vector>

namespace weir::stage {

/// The kernel of every type and operation at one instruction-set level.
class KernelTable {
 public:
  explicit KernelTable(op::CpuLevel level);

  /// What the message's collective makes of the ranks' data.
  slot::Fold fold_of(const wire::MessageShape& shape) const;

 private:
  op::ReduceKernel of(DataType type, Operation operation) const {
    return kernels_[static_cast<std::size_t>(type)][static_cast<std::size_t>(operation)];
  }

  std::array<std::array<op::ReduceKernel, kOperations>, kDataTypes> kernels_{};
};

/// The middle stage: everything that happens to packets between ring neighbours, for the rings one
/// worker owns. Classify (lib/conn), hold and reduce (lib/slot, lib/op), write results (lib/slot),
/// then the Forwarder. All state of a ring is in here, touched by one lcore; every packet of a
/// ring's connections passes through here in order, whatever becomes of it (protocol I7).
class Worker {
 public:
  struct Settings {
    conn::Classifier::Settings classifier;
    op::CpuLevel level = op::CpuLevel::baseline;
    std::pmr::memory_resource* memory = std::pmr::get_default_resource(); // for slots and results
    slot::ReductionHelpers* helpers =
        nullptr; // nullptr: the worker makes every sum itself, at once
  };

  Worker(const ring::RingDirectory& directory, std::vector<std::uint16_t> rings,
         const Settings& settings, l2::Bridge& bridge, Forwarder& forwarder,
         frame::FrameCounters& counters);

  /// Takes the frame. It was handed on by Receive, or is otherwise one that
  /// conn::Classifier::classify takes.
  void accept(frame::Frame& frame, frame::Instant now);

  /// Sends the results of sums that helpers have made. Returns how many frames that were, and one
  /// at least while there are more to wait for.
  unsigned collect(frame::Instant now);

  /// Gives up what the ring holds and the connections it has admitted.
  void reset_ring(std::uint16_t ring, frame::Instant now);

  /// The same for good.
  void withdraw_ring(std::uint16_t ring, frame::Instant now);

  const std::vector<std::uint16_t>& rings() const { return owned_; }

  const frame::RingCounters& counters_of(std::uint16_t ring) const {
    return rings_[ring]->counters;
  }

  const slot::SlotTable& slots_of(std::uint16_t ring) const { return rings_[ring]->slots; }

  const conn::Classifier& classifier() const { return classifier_; }

  std::uint64_t held() const;

 private:
  struct Ring {
    Ring(const ring::RingSpec& spec, std::pmr::memory_resource* memory);

    slot::SlotTable slots;
    frame::RingCounters counters;
    std::vector<l2::Pin> pins; // of the incarnation's members
  };

  void forward(frame::Frame& frame, frame::Instant now);
  void begin_incarnation(std::uint16_t ring, frame::Instant now);
  void drop_given_up_hellos(frame::Instant now);
  void unpin(Ring& ring, frame::Instant now);
  void contribute(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now);
  void complete(const conn::Verdict& verdict, std::uint32_t slot, frame::Instant now);
  unsigned send_results(slot::ReductionQueue::Entry& entry, frame::Instant now);
  void finish(slot::ReductionQueue::Entry& entry, frame::Instant now);
  bool has_result_on_connection_of(const frame::Frame& frame,
                                   const slot::ReductionQueue::Entry& entry) const;
  void settle_connection_of(const frame::Frame& frame, frame::Instant now);
  void settle_ring(std::uint16_t ring, frame::Instant now);
  void send_in_turn(frame::Frame& frame, frame::Departure departure, frame::Instant now,
                    const frame::TraceRecord& record = {.event = frame::TraceEvent::forwarded});
  void answer_from_cache(frame::Frame& frame, const conn::Verdict& verdict, std::uint32_t slot,
                         frame::Instant now);
  void forward_stale(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now);
  void drop_contribution(frame::Frame& frame, std::uint16_t ring, DropReason reason,
                         frame::Instant now);
  void flush(std::uint16_t ring, DropReason reason, frame::Instant now);

  const ring::RingDirectory& directory_;
  std::vector<std::uint16_t> owned_;
  KernelTable kernels_;
  conn::Classifier classifier_;
  std::vector<std::optional<Ring>> rings_; // by directory index
  l2::Bridge& bridge_;
  Forwarder& forwarder_;
  frame::FrameCounters& counters_;
  slot::ReductionHelpers* helpers_;
  slot::ReductionQueue sums_;
};

/// What a frame brings to its slot, by a verdict to contribute.
inline slot::Contribution contribution_of(const frame::Frame& frame, const conn::Verdict& verdict,
                                          frame::Instant now) {
  return {.slot = verdict.record->first_slot + verdict.packet,
          .message = verdict.record->message,
          .rank = verdict.rank,
          .shape = verdict.record->shape,
          .data_bytes = static_cast<std::uint32_t>(frame.packet.payload_bytes -
                                                   slot::ina_bytes(frame.packet)),
          .now = now.ns};
}

/// What a ring's slots are sized to.
slot::SlotTable::Dimensions dimensions_of(const ring::RingSpec& ring);

} // namespace weir::stage
