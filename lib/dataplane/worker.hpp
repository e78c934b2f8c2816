// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "agg/slot_table.hpp"
#include "conn/classify.hpp"
#include "dataplane/forward.hpp"
#include "dataplane/sum_queue.hpp"
#include "l2/bridge.hpp"
#include "splice/splice.hpp"

#include <array>
#include <memory_resource>
#include <optional>
#include <vector>

namespace weir::dataplane {

/// The kernel of every type and operation at one instruction-set level.
class KernelTable {
 public:
  explicit KernelTable(agg::CpuLevel level);

  /// What the message's collective makes of the ranks' data.
  agg::Fold fold_of(const wire::MessageShape& shape) const;

 private:
  agg::ReduceKernel of(DataType type, Operation operation) const {
    return kernels_[static_cast<std::size_t>(type)][static_cast<std::size_t>(operation)];
  }

  std::array<std::array<agg::ReduceKernel, kOperations>, kDataTypes> kernels_{};
};

/// The middle stage: everything that happens to packets between ring neighbours, for the rings one
/// worker owns. Classify (lib/conn), slot and reduce (lib/agg), splice (lib/splice), then the
/// Forwarder. All state of a ring is in here, touched by one lcore; every packet of a ring's
/// connections passes through here in order, whatever becomes of it (protocol I7).
class Worker {
 public:
  struct Settings {
    conn::Classifier::Settings classifier;
    agg::CpuLevel level = agg::CpuLevel::baseline;
    std::pmr::memory_resource* memory = std::pmr::get_default_resource(); // for slots and results
    SumHelpers* helpers = nullptr; // nullptr: the worker makes every sum itself, at once
  };

  Worker(const conn::RingDirectory& directory, std::vector<std::uint16_t> rings,
         const Settings& settings, l2::Bridge& bridge, Forwarder& forwarder,
         FrameCounters& counters);

  /// Takes the frame. It was handed on by Rx, or is otherwise one that conn::Classifier::classify
  /// takes.
  void accept(wire::Frame& frame, Instant now);

  /// Sends the results of sums that helpers have made. Returns how many frames that were, and one
  /// at least while there are more to wait for.
  unsigned collect(Instant now);

  /// Gives up what the ring holds and the connections it has admitted.
  void reset_ring(std::uint16_t ring, Instant now);

  /// The same for good.
  void withdraw_ring(std::uint16_t ring, Instant now);

  const std::vector<std::uint16_t>& rings() const { return owned_; }

  const RingCounters& counters_of(std::uint16_t ring) const { return rings_[ring]->counters; }

  const agg::SlotTable& slots_of(std::uint16_t ring) const { return rings_[ring]->slots; }

  const conn::Classifier& classifier() const { return classifier_; }

  std::uint64_t held() const;

 private:
  struct Ring {
    Ring(const conn::RingSpec& spec, std::pmr::memory_resource* memory);

    agg::SlotTable slots;
    RingCounters counters;
    std::vector<l2::Pin> pins; // of the incarnation's members
  };

  void forward(wire::Frame& frame, Instant now);
  void begin_incarnation(std::uint16_t ring, Instant now);
  void drop_given_up_hellos(Instant now);
  void unpin(Ring& ring, Instant now);
  void contribute(wire::Frame& frame, const conn::Verdict& verdict, Instant now);
  void complete(const conn::Verdict& verdict, std::uint32_t slot, Instant now);
  unsigned send_results(SumQueue::Entry& entry, Instant now);
  void finish(SumQueue::Entry& entry, Instant now);
  bool has_result_on_connection_of(const wire::Frame& frame, const SumQueue::Entry& entry) const;
  void settle_connection_of(const wire::Frame& frame, Instant now);
  void settle_ring(std::uint16_t ring, Instant now);
  void send_in_turn(wire::Frame& frame, wire::Departure departure, Instant now,
                    const TraceRecord& record = {.event = TraceEvent::forwarded});
  void answer_from_cache(wire::Frame& frame, const conn::Verdict& verdict, std::uint32_t slot,
                         Instant now);
  void forward_stale(wire::Frame& frame, const conn::Verdict& verdict, Instant now);
  void drop_contribution(wire::Frame& frame, std::uint16_t ring, DropReason reason, Instant now);
  void flush(std::uint16_t ring, DropReason reason, Instant now);

  const conn::RingDirectory& directory_;
  std::vector<std::uint16_t> owned_;
  KernelTable kernels_;
  conn::Classifier classifier_;
  std::vector<std::optional<Ring>> rings_; // by directory index
  l2::Bridge& bridge_;
  Forwarder& forwarder_;
  FrameCounters& counters_;
  SumHelpers* helpers_;
  SumQueue sums_;
};

/// What a frame brings to its slot, by a verdict to contribute.
inline agg::Contribution contribution_of(const wire::Frame& frame, const conn::Verdict& verdict,
                                         Instant now) {
  return {.slot = verdict.record->first_slot + verdict.packet,
          .message = verdict.record->message,
          .rank = verdict.rank,
          .shape = verdict.record->shape,
          .data_bytes = static_cast<std::uint32_t>(frame.packet.payload_bytes -
                                                   splice::ina_bytes(frame.packet)),
          .now = now.ns};
}

/// What a ring's slots are sized to.
agg::SlotTable::Dimensions dimensions_of(const conn::RingSpec& ring);

} // namespace weir::dataplane
