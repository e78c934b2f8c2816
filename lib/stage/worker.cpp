// SPDX-License-Identifier: BSD-3-Clause
#include "stage/worker.hpp"

#include "frame/frame.hpp"
#include "slot/result_packet.hpp"
#include "wire/icrc.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace weir::stage {

using conn::Verdict;
using frame::Departure;
using frame::Frame;
using slot::SlotEvent;

namespace {

frame::TraceRecord ring_record(frame::TraceEvent event, const Verdict& verdict) {
  return {.message = verdict.record->message,
          .packet = verdict.packet,
          .ring = verdict.ring,
          .rank = verdict.rank,
          .event = event};
}

DropReason reason_for(SlotEvent event) {
  switch (event) {
  case SlotEvent::repeat_held:
    return DropReason::repeat_held;
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

/// Acknowledgements, responses and CNPs belong to the other direction's connection, or to none, so
/// they wait for nobody.
bool takes_its_turn(const Frame& frame) {
  return frame.packet.opcode.position != wire::Position::none;
}

} // namespace

KernelTable::KernelTable(op::CpuLevel level) {
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    for (std::size_t operation = 0; operation < kOperations; ++operation) {
      kernels_[type][operation] =
          op::find_kernel(static_cast<DataType>(type), static_cast<Operation>(operation), level);
    }
  }
}

slot::Fold KernelTable::fold_of(const wire::MessageShape& shape) const {
  switch (shape.collective) {
  case Collective::broadcast:
    return slot::Fold::copy_of(shape.root, of(DataType::u8, Operation::bitwise_or));
  case Collective::barrier:
    return {};
  default:
    return {.kernel = of(shape.data_type, shape.operation)};
  }
}

slot::SlotTable::Dimensions dimensions_of(const ring::RingSpec& ring) {
  return {ring.world(), ring.depth(), ring.packets_per_message(), ring.mtu};
}

Worker::Ring::Ring(const ring::RingSpec& spec, std::pmr::memory_resource* memory)
    : slots(dimensions_of(spec), memory) {
  pins.reserve(spec.world());
}

Worker::Worker(const ring::RingDirectory& directory, std::vector<std::uint16_t> rings,
               const Settings& settings, l2::Bridge& bridge, Forwarder& forwarder,
               frame::FrameCounters& counters)
    : directory_(directory), owned_(std::move(rings)), kernels_(settings.level),
      classifier_(
          directory, owned_, settings.classifier,
          [this](const ring::RingRank& rank) { return rings_[rank.ring]->slots.holds(rank.rank); }),
      rings_(directory.rings().size()), bridge_(bridge), forwarder_(forwarder), counters_(counters),
      helpers_(settings.helpers) {
  for (const std::uint16_t ring : owned_) {
    rings_[ring].emplace(directory.rings()[ring], settings.memory);
  }
}

void Worker::accept(Frame& frame, frame::Instant now) {
  const Verdict verdict = classifier_.classify(frame, now.ms);
  if (classifier_.has_given_up()) [[unlikely]] {
    drop_given_up_hellos(now);
  }
  switch (verdict.step) {
  case Verdict::Step::forward:
    if (verdict.foreign) {
      counters_.count(*verdict.foreign);
    }
    return forward(frame, now);
  case Verdict::Step::forward_stale:
    return forward_stale(frame, verdict, now);
  case Verdict::Step::drop:
    return forwarder_.drop(frame, verdict.drop, now);
  case Verdict::Step::contribute:
    return contribute(frame, verdict, now);
  case Verdict::Step::wait:
    return forwarder_.note(
        frame, {.ring = verdict.ring, .rank = verdict.rank, .event = frame::TraceEvent::waits},
        now);
  case Verdict::Step::begin:
    return begin_incarnation(verdict.ring, now);
  }
}

void Worker::forward(Frame& frame, frame::Instant now) {
  if (takes_its_turn(frame)) {
    return send_in_turn(frame, Departure::forwarded, now);
  }
  forwarder_.send(frame, Departure::forwarded, now, {.event = frame::TraceEvent::forwarded},
                  classifier_.ports().destination_of(frame.pair));
}

/// What the old incarnation holds goes, then the hellos meet in slot 0.
void Worker::begin_incarnation(std::uint16_t ring, frame::Instant now) {
  flush(ring, DropReason::incarnation_flush, now);
  const auto hellos = classifier_.begin(ring, now.ms);
  drop_given_up_hellos(now);
  for (std::uint16_t rank = 0; rank < hellos.size(); ++rank) {
    if (const auto pin = bridge_.pin_source(hellos[rank]->bytes(), hellos[rank]->ingress)) {
      rings_[ring]->pins.push_back(*pin);
    }
    contribute(*hellos[rank], classifier_.hello_verdict({ring, rank}), now);
  }
}

void Worker::drop_given_up_hellos(frame::Instant now) {
  for (const conn::GivenUp& hello : classifier_.take_given_up()) {
    drop_contribution(*hello.frame, hello.ring, hello.reason, now);
  }
}

void Worker::unpin(Ring& ring, frame::Instant now) {
  for (const l2::Pin& pin : ring.pins) {
    bridge_.unpin(pin, now.ms);
  }
  ring.pins.clear();
}

void Worker::contribute(Frame& frame, const Verdict& verdict, frame::Instant now) {
  if (!wire::verify_icrc(frame)) {
    return drop_contribution(frame, verdict.ring, DropReason::bad_icrc, now);
  }
  Ring& ring = *rings_[verdict.ring];
  const slot::Contribution contribution = contribution_of(frame, verdict, now);
  const SlotEvent event = ring.slots.arrive(contribution, &frame);
  switch (event) {
  case SlotEvent::stored:
    ++ring.counters.contributions;
    return forwarder_.note(frame, ring_record(frame::TraceEvent::held, verdict), now);
  case SlotEvent::completed:
    ++ring.counters.contributions;
    forwarder_.note(frame, ring_record(frame::TraceEvent::completed, verdict), now);
    return complete(verdict, contribution.slot, now);
  case SlotEvent::repeat_complete:
    return answer_from_cache(frame, verdict, contribution.slot, now);
  case SlotEvent::stale:
    return forward_stale(frame, verdict, now);
  default:
    return drop_contribution(frame, verdict.ring, reason_for(event), now);
  }
}

void Worker::complete(const Verdict& verdict, std::uint32_t slot, frame::Instant now) {
  if (sums_.is_full()) {
    finish(sums_.at(0), now);
    sums_.remove_oldest();
  }
  slot::SlotTable& slots = rings_[verdict.ring]->slots;
  slot::ReductionQueue::Entry& entry = sums_.add();
  entry.record = ring_record(frame::TraceEvent::result, verdict);
  entry.slot = slot;
  entry.collective = verdict.record->shape.collective;
  entry.sum.offer({.frames = slots.frames_of(slot),
                   .result = slots.result_room(slot),
                   .fold = kernels_.fold_of(verdict.record->shape),
                   .session = classifier_.session_of(verdict.ring)});
  if (helpers_ == nullptr || !helpers_->ask(entry.sum)) {
    entry.sum.make();
  }
  collect(now);
}

unsigned Worker::collect(frame::Instant now) {
  unsigned frames = 0;
  for (; !sums_.is_empty(); sums_.remove_oldest()) {
    slot::ReductionQueue::Entry& entry = sums_.at(0);
    if (entry.has_left) {
      continue;
    }
    if (!entry.sum.is_made()) {
      return frames + 1;
    }
    frames += send_results(entry, now);
  }
  return frames;
}

unsigned Worker::send_results(slot::ReductionQueue::Entry& entry, frame::Instant now) {
  Ring& ring = *rings_[entry.record.ring];
  const auto frames = entry.sum.task().frames;
  const slot::SlotResult result = ring.slots.complete(entry.slot, entry.sum.crc());
  ++ring.counters.slots_completed;
  ring.counters.hellos += entry.collective == Collective::hello ? 1 : 0;
  ring.counters.results += frames.size();
  ring.counters.reduced_bytes += frames.size() * result.data.size();
  ring.counters.slot_time_ns.add(now.ns - ring.slots.first_arrival_of(entry.slot));
  const ring::RingSpec& spec = directory_.rings()[entry.record.ring];
  for (std::uint16_t rank = 0; rank < frames.size(); ++rank) {
    entry.record.rank = rank;
    forwarder_.send(*frames[rank], Departure::consumed, now, entry.record,
                    classifier_.ports().port_of({entry.record.ring, spec.successor(rank)}));
  }
  entry.has_left = true;
  return static_cast<unsigned>(frames.size());
}

void Worker::finish(slot::ReductionQueue::Entry& entry, frame::Instant now) {
  if (entry.has_left) {
    return;
  }
  if (!entry.sum.make()) {
    while (!entry.sum.is_made()) { // by a helper, which is at it
      std::this_thread::yield();
    }
  }
  send_results(entry, now);
}

bool Worker::has_result_on_connection_of(const Frame& frame,
                                         const slot::ReductionQueue::Entry& entry) const {
  if (entry.has_left) {
    return false;
  }
  const auto senders = directory_.senders(frame.pair);
  return std::any_of(senders.begin(), senders.end(), [&](const ring::RingRank& sender) {
    return sender.ring == entry.record.ring &&
           entry.sum.task().frames[sender.rank]->packet.destination_qp ==
               frame.packet.destination_qp;
  });
}

/// A connection is of one ring, so the first sum that has a result on it tells which. What other
/// rings wait for goes on waiting.
void Worker::settle_connection_of(const Frame& frame, frame::Instant now) {
  for (std::uint32_t place = sums_.size(); place > 0; --place) {
    const slot::ReductionQueue::Entry& entry = sums_.at(place - 1);
    if (has_result_on_connection_of(frame, entry)) {
      return settle_ring(entry.record.ring, now);
    }
  }
}

void Worker::settle_ring(std::uint16_t ring, frame::Instant now) {
  for (std::uint32_t place = 0; place < sums_.size(); ++place) {
    if (sums_.at(place).record.ring == ring) {
      finish(sums_.at(place), now);
    }
  }
}

/// What is no sum's result overtakes none on its own connection (I7).
void Worker::send_in_turn(Frame& frame, Departure departure, frame::Instant now,
                          const frame::TraceRecord& record) {
  settle_connection_of(frame, now);
  forwarder_.send(frame, departure, now, record, classifier_.ports().destination_of(frame.pair));
}

void Worker::answer_from_cache(Frame& frame, const Verdict& verdict, std::uint32_t slot,
                               frame::Instant now) {
  Ring& ring = *rings_[verdict.ring];
  ++ring.counters.cached_results;
  slot::write_result(frame, ring.slots.result_of(slot), classifier_.session_of(verdict.ring));
  send_in_turn(frame, Departure::consumed, now,
               ring_record(frame::TraceEvent::cached_result, verdict));
}

void Worker::forward_stale(Frame& frame, const Verdict& verdict, frame::Instant now) {
  ++rings_[verdict.ring]->counters.stale_repeats;
  frame.traffic = frame::TrafficClass::ring; // as the results on its connection
  send_in_turn(
      frame, Departure::forwarded, now,
      {.ring = verdict.ring, .rank = verdict.rank, .event = frame::TraceEvent::stale_repeat});
}

void Worker::drop_contribution(Frame& frame, std::uint16_t ring, DropReason reason,
                               frame::Instant now) {
  ++rings_[ring]->counters.dropped[static_cast<std::size_t>(reason)];
  forwarder_.drop(frame, reason, now);
}

void Worker::flush(std::uint16_t ring, DropReason reason, frame::Instant now) {
  settle_ring(ring, now); // a helper may be at some of its frames
  ++rings_[ring]->counters.flushes;
  rings_[ring]->slots.flush([&](Frame& frame) { drop_contribution(frame, ring, reason, now); });
  unpin(*rings_[ring], now);
}

void Worker::reset_ring(std::uint16_t ring, frame::Instant now) {
  flush(ring, DropReason::ring_reset, now);
  classifier_.reset(ring, now.ms);
  drop_given_up_hellos(now);
}

void Worker::withdraw_ring(std::uint16_t ring, frame::Instant now) {
  flush(ring, DropReason::ring_withdrawn, now);
  classifier_.withdraw(ring, now.ms);
  drop_given_up_hellos(now);
}

std::uint64_t Worker::held() const {
  std::uint64_t frames = classifier_.waiting_hellos();
  for (const std::uint16_t ring : owned_) {
    frames += rings_[ring]->slots.held();
  }
  return frames;
}

} // namespace weir::stage
