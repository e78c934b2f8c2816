// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "frame/prefetch.hpp"
#include "slot/fold.hpp"
#include "wire/message_shape.hpp"

#include <bitset>
#include <cassert>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

namespace weir::slot {

/// The reduced data of one slot and its CRC: those of a partial sum or a total. Every packet of the
/// sum gets them.
struct SlotResult {
  std::span<const std::uint8_t> data;
  std::uint32_t crc = 0;
};

/// Folds the frames' data, which stand by child, into `result` and writes that into each frame;
/// `skip` bytes of INA header stand before the data of each payload. Returns the result's CRC. The
/// fold's kernel is not called when there is no data.
std::uint32_t fold_frames(std::span<frame::Frame* const> frames, std::size_t skip, const Fold& fold,
                          std::span<std::uint8_t> result);

/// What happened to a contribution: the rows of docs/protocol.md §4.
enum class SlotEvent : std::uint8_t {
  stored,
  completed,        // the last bit is set: reduce, then emit for every child
  total,            // what the switch above has made of the partial sum is there
  total_early,      // the same, and the partial sum has not left
  repeat_held,      // bit set already, slot still filling
  repeat_complete,  // emit the cached sum on this child's connection only
  stale,            // the slot is in use for a later message
  window_violation, // would reclaim a slot that is still filling
  disagree_operation,
  disagree_type,
  disagree_length,
  disagree_collective,
  disagree_root,
  disagree_payload,
};

struct Contribution {
  std::uint32_t slot = 0;
  std::uint64_t message = 0; // tag
  std::uint16_t child = 0;
  wire::MessageShape shape;
  std::uint32_t data_bytes = 0; // of this packet: its payload without an INA header
  std::uint64_t now = 0;        // nanoseconds
};

/// A copy of a filling slot.
struct WaitingSlot {
  std::uint32_t slot = 0;
  std::uint64_t message = 0;
  std::uint64_t first_arrival = 0; // nanoseconds
  std::bitset<kMaxWorld> children; // whose packets have come
  bool is_sent = false;            // the partial sum has left, and the total is missing
};

/// A filling slot, for reports.
struct StuckSlot {
  std::uint64_t message = 0;
  std::uint32_t packet = 0;
  std::uint64_t waiting_ns = 0;
  std::vector<std::uint16_t> missing; // children, or the parent
};

/// The 2N x L slots of one ring (docs/protocol.md §4). One worker owns a table. The table owns the
/// frames stored in it until they leave or flush().
///
/// On the root of a tree, or where there is one switch, a slot is empty, filling, ready and
/// complete. On a switch with a parent it is also sent, when its partial sum has left, and known,
/// when the total has come (docs/protocol.md §11.3).
class SlotTable {
 public:
  struct Dimensions {
    std::uint16_t children = 0;            // H where each is a rank
    std::uint32_t messages = 0;            // 2N
    std::uint32_t packets_per_message = 0; // L
    std::uint16_t mtu = 0;                 // most bytes of payload in a packet
    bool has_parent = false;               // the sum of the children's data is a partial one

    std::size_t slots() const { return std::size_t{messages} * packets_per_message; }

    /// Children, and the parent.
    std::size_t senders() const { return children + (has_parent ? 1u : 0u); }

    /// Frames that a ring can hold at once: all but the last contribution of every slot, and the
    /// total's where the last one has left.
    std::size_t held_frames() const { return slots() * (senders() - 1u); }

    /// Bytes of a slot's cached sums: the total, and a partial sum.
    std::size_t result_bytes() const { return (has_parent ? std::size_t{2} : 1) * mtu; }

    std::size_t bytes() const;
  };

  SlotTable(const Dimensions& dimensions, std::pmr::memory_resource* memory);

  /// Applies the table of docs/protocol.md §4. Takes the frame on `stored` and `completed`.
  [[gnu::always_inline]] SlotEvent arrive(const Contribution& contribution, frame::Frame* frame) {
    Slot& slot = slots_[contribution.slot];
    const bool is_awaited = state_of(slot) == State::filling && slot.agrees(contribution) &&
                            !has(contribution.slot, contribution.child);
    if (is_awaited) [[likely]] {
      return store(slot, contribution, frame);
    }
    return arrive_otherwise(slot, contribution, frame);
  }

  /// The same for the total of a slot, from the switch above: the table of docs/protocol.md §11.4.
  /// Takes the frame on `total`.
  SlotEvent arrive_total(const Contribution& contribution, frame::Frame* frame);

  /// Asks for what arrive() uses of the slot. Also for the place of its result, with the last two
  /// packets, since it takes longer to come than one takes to be verified, and with the first one
  /// of another use of the slot: it is nearer then when these come. The last one brings it into the
  /// first-level cache, since stores become visible in order, and each would wait for the second.
  void load(std::uint32_t slot) const {
    frame::prefetch(&slots_[slot]);
    frame::prefetch(&cell(slot, 0));
    const std::uint32_t missing = dimensions_.children - slots_[slot].arrived;
    if (missing == 1) {
      load_result_room<frame::Cache::first>(slot);
    } else if (missing == 2 || missing == 0) {
      load_result_room<frame::Cache::second>(slot);
    }
  }

  /// Asks for what is_ready() uses of the slot.
  void load_state(std::uint32_t slot) const { frame::prefetch(&slots_[slot]); }

  /// For a slot that arrive() just called completed: its frames in order of children, which the
  /// caller owns again once it has called release().
  std::span<frame::Frame* const> frames_of(std::uint32_t slot) const {
    assert(slots_[slot].arrived == dimensions_.children);
    return {frames_.data() + std::size_t{slot} * senders_, dimensions_.children};
  }

  /// The place for the sum of such a slot: its result, or its partial sum.
  std::span<std::uint8_t> result_room(std::uint32_t slot) { return room(slot, 0); }

  /// Stores that the sum is there. Until release() the slot counts as filling.
  void make_ready(std::uint32_t slot, std::uint32_t crc);

  /// Whether the slot has the message's sum, which has not left.
  bool is_ready(std::uint32_t slot, std::uint64_t message) const {
    return is_in(State::ready, slot, message);
  }

  /// Whether contributions to the message have come and the slot waits for others.
  bool is_filling(std::uint32_t slot, std::uint64_t message) const {
    return is_in(State::filling, slot, message);
  }

  /// Whether the message's partial sum has left, and its total has not come.
  bool is_sent(std::uint32_t slot, std::uint64_t message) const {
    return is_in(State::sent, slot, message);
  }

  /// Whether the message's total has come, and has not left.
  bool is_known(std::uint32_t slot, std::uint64_t message) const {
    return is_in(State::known, slot, message);
  }

  /// Whether packets of the message have come, and its result has not left.
  bool is_unfinished(std::uint32_t slot, std::uint64_t message) const {
    const State state = state_of(slots_[slot]);
    return state != State::empty && state != State::complete && slots_[slot].tag == message;
  }

  /// Whether the message's partial sum has left, some time.
  bool has_sent(std::uint32_t slot, std::uint64_t message) const {
    const State state = state_of(slots_[slot]);
    return slots_[slot].tag == message &&
           (state == State::sent || state == State::known || state == State::complete);
  }

  /// Whether the message's result has left.
  bool is_complete(std::uint32_t slot, std::uint64_t message) const {
    return is_in(State::complete, slot, message);
  }

  /// Whether the slot has the sender's packet, or had it. Only for a slot that holds the message.
  bool has(std::uint32_t slot, std::uint16_t sender) const { return cell(slot, sender) != nullptr; }

  /// Whether the sender's packet for the message has come, in this use of the slot or an earlier
  /// one.
  bool has_come(std::uint32_t slot, std::uint64_t message, std::uint16_t sender) const {
    const Slot& held = slots_[slot];
    return state_of(held) != State::empty &&
           (held.tag == message ? has(slot, sender) : held.tag > message);
  }

  /// The ready slot's frames leave, and are the caller's. Repeats get its result from now on.
  std::span<frame::Frame* const> release(std::uint32_t slot);

  /// The ready slot's partial sum leaves with the last child's frame, which is the caller's. The
  /// others stay until release_total().
  frame::Frame& release_partial(std::uint32_t slot);

  /// The known slot's total leaves, with the frames that total_frames_of() tells, which are the
  /// caller's. `crc` is the total's.
  void release_total(std::uint32_t slot, std::uint32_t crc);

  /// The frames of a known slot: of all children but the last one, and of the parent.
  struct TotalFrames {
    std::span<frame::Frame* const> held;
    frame::Frame* total;
  };

  TotalFrames total_frames_of(std::uint32_t slot) const;

  /// The place for the total of a known slot.
  std::span<std::uint8_t> total_room(std::uint32_t slot);

  const wire::MessageShape& shape_of(std::uint32_t slot) const { return slots_[slot].shape; }

  /// The cached result of a complete slot.
  SlotResult result_of(std::uint32_t slot) const;

  /// The cached partial sum of a slot that has_sent() it.
  SlotResult partial_of(std::uint32_t slot) const;

  std::uint64_t first_arrival_of(std::uint32_t slot) const { return slots_[slot].first_arrival; }

  /// Empties every slot. `release` gets each held frame. Takes time only for these frames.
  template <typename Release>
  void flush(Release&& release);

  /// The same for slots that hold frames, at most so many, for a table that takes no more.
  template <typename Release>
  void flush_some(std::size_t slots, Release&& release);

  std::uint16_t children() const { return dimensions_.children; }

  std::size_t slots() const { return slots_.size(); }

  /// Bytes of what arrive() uses, without frames and results.
  std::size_t state_bytes() const {
    return slots_.size() * (sizeof(Slot) + senders_ * sizeof(frame::Frame*));
  }

  std::uint64_t held() const { return held_; }

  /// Whether a slot that is filling has a frame of this sender. Takes time for each such slot.
  bool holds(std::uint16_t sender) const;

  std::uint32_t filling() const { return static_cast<std::uint32_t>(filling_.size()); }

  /// Copies of the slots that wait for packets, in no order. Only this must run on the worker.
  std::vector<WaitingSlot> waiting() const;

  /// The copies that have waited longest, at most `limit`.
  std::vector<StuckSlot> longest_of(std::vector<WaitingSlot> waiting, std::size_t limit,
                                    std::uint64_t now) const;

  std::vector<StuckSlot> longest_waiting(std::size_t limit, std::uint64_t now) const {
    return longest_of(waiting(), limit, now);
  }

 private:
  template <frame::Cache kInto>
  void load_result_room(std::uint32_t slot) const {
    frame::prefetch_range<kInto>(results_.data() + std::size_t{slot} * result_bytes_,
                                 slots_[slot].data_bytes);
  }

  enum class State : std::uint8_t {
    empty,
    filling,
    ready, // reduced, and not released
    sent,  // the partial sum has left
    known, // the total has come, and not left
    complete,
  };

  /// One cache line.
  struct alignas(frame::kCacheLine) Slot {
    State state = State::empty;
    std::uint16_t arrived = 0;
    std::uint32_t data_bytes = 0;
    std::uint32_t crc = 0; // of the cached sum of the children's data
    wire::MessageShape shape;
    std::uint64_t tag = 0;
    std::uint64_t generation = 0;
    std::uint64_t first_arrival = 0;
    std::uint32_t filling_index = 0; // index in filling_
    std::uint32_t total_crc = 0;     // of the cached total of a switch with a parent

    /// Whether the contribution is one to the message that the slot holds.
    [[gnu::always_inline]] bool agrees(const Contribution& contribution) const {
      return tag == contribution.message && data_bytes == contribution.data_bytes &&
             shape == contribution.shape;
    }
  };

  static_assert(sizeof(Slot) == frame::kCacheLine);

  State state_of(const Slot& slot) const {
    return slot.generation == generation_ ? slot.state : State::empty;
  }

  bool is_in(State state, std::uint32_t slot, std::uint64_t message) const {
    return state_of(slots_[slot]) == state && slots_[slot].tag == message;
  }

  static std::optional<SlotEvent> disagreement(const Slot& slot, const Contribution& contribution);

  /// One of the slot's places for sums.
  std::span<std::uint8_t> room(std::uint32_t slot, std::size_t offset) {
    return {results_.data() + std::size_t{slot} * result_bytes_ + offset, slots_[slot].data_bytes};
  }

  std::span<const std::uint8_t> room(std::uint32_t slot, std::size_t offset) const {
    return {results_.data() + std::size_t{slot} * result_bytes_ + offset, slots_[slot].data_bytes};
  }

  bool has_left(const Slot& slot, std::uint16_t sender) const;
  std::bitset<kMaxWorld> children_in(std::uint32_t slot) const;
  void stop_filling(Slot& slot);
  void reclaim(Slot& slot, const Contribution& contribution);
  SlotEvent arrive_otherwise(Slot& slot, const Contribution& contribution, frame::Frame* frame);

  [[gnu::always_inline]] SlotEvent store(Slot& slot, const Contribution& contribution,
                                         frame::Frame* frame) {
    assert(slot.tag == contribution.message && state_of(slot) == State::filling);
    assert(!has(contribution.slot, contribution.child) && slot.arrived < dimensions_.children);
    ++slot.arrived;
    cell(contribution.slot, contribution.child) = frame;
    ++held_;
    return slot.arrived == dimensions_.children ? SlotEvent::completed : SlotEvent::stored;
  }

  /// The sender's frame; nullptr when it has not come. The frames of a complete slot have left, and
  /// so has the last child's of a sent or known one.
  frame::Frame*& cell(std::uint32_t slot, std::uint16_t sender) {
    assert(slot < slots_.size() && sender < senders_);
    return frames_[std::size_t{slot} * senders_ + sender];
  }

  frame::Frame* const& cell(std::uint32_t slot, std::uint16_t sender) const {
    assert(slot < slots_.size() && sender < senders_);
    return frames_[std::size_t{slot} * senders_ + sender];
  }

  Dimensions dimensions_;
  std::uint16_t senders_;
  std::size_t result_bytes_; // of a slot
  std::pmr::vector<Slot> slots_;
  std::pmr::vector<frame::Frame*> frames_;  // slot x senders + sender
  std::pmr::vector<std::uint8_t> results_;  // slot x result_bytes_
  std::uint64_t held_ = 0;                  // frames stored now
  std::pmr::vector<std::uint32_t> filling_; // filling and ready slots, in no order
  std::uint64_t generation_ = 1;            // slots of an older generation are empty
};

template <typename Release>
void SlotTable::flush(Release&& release) {
  flush_some(filling_.size(), release);
  assert(held_ == 0);
  ++generation_;
}

template <typename Release>
void SlotTable::flush_some(std::size_t slots, Release&& release) {
  for (; slots != 0 && !filling_.empty(); --slots) {
    const std::uint32_t index = filling_.back();
    filling_.pop_back();
    for (std::uint16_t sender = 0; sender < senders_; ++sender) {
      frame::Frame* frame = cell(index, sender);
      if (frame != nullptr && !has_left(slots_[index], sender)) {
        assert(held_ != 0);
        --held_;
        release(*frame);
      }
    }
  }
}

} // namespace weir::slot
