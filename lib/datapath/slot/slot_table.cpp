// SPDX-License-Identifier: BSD-3-Clause
#include "slot/slot_table.hpp"

#include "slot/fold.hpp"
#include "wire/crc32.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <tuple>

namespace weir::slot {
namespace {

std::optional<SlotEvent> difference(const wire::MessageShape& a, const wire::MessageShape& b) {
  if (a.operation != b.operation) {
    return SlotEvent::disagree_operation;
  }
  if (a.data_type != b.data_type) {
    return SlotEvent::disagree_type;
  }
  if (a.data_bytes != b.data_bytes) {
    return SlotEvent::disagree_length;
  }
  if (a.collective != b.collective) {
    return SlotEvent::disagree_collective;
  }
  if (a.root != b.root) {
    return SlotEvent::disagree_root;
  }
  return std::nullopt;
}

} // namespace

std::size_t SlotTable::Dimensions::bytes() const {
  const std::size_t own = sizeof(Slot) + sizeof(std::uint32_t);
  return slots() * (own + senders() * sizeof(frame::Frame*) + result_bytes());
}

SlotTable::SlotTable(const Dimensions& dimensions, std::pmr::memory_resource* memory)
    : dimensions_(dimensions), senders_(static_cast<std::uint16_t>(dimensions.senders())),
      result_bytes_(dimensions.result_bytes()), slots_(dimensions.slots(), memory),
      frames_(dimensions.slots() * dimensions.senders(), memory),
      results_(dimensions.slots() * dimensions.result_bytes(), memory), filling_(memory) {
  filling_.reserve(dimensions.slots());
}

SlotEvent SlotTable::arrive_otherwise(Slot& slot, const Contribution& contribution,
                                      frame::Frame* frame) {
  const State state = state_of(slot);
  if (state != State::empty && slot.tag > contribution.message) {
    return SlotEvent::stale;
  }
  const bool is_older = state == State::empty || slot.tag < contribution.message;
  if (is_older) {
    if (state != State::empty && state != State::complete) {
      return SlotEvent::window_violation;
    }
    reclaim(slot, contribution);
    return store(slot, contribution, frame);
  }
  if (const auto event = disagreement(slot, contribution)) {
    return *event;
  }
  if (state == State::complete || has_left(slot, contribution.child)) {
    return SlotEvent::repeat_complete;
  }
  if (has(contribution.slot, contribution.child)) {
    return SlotEvent::repeat_held;
  }
  return store(slot, contribution, frame);
}

SlotEvent SlotTable::arrive_total(const Contribution& contribution, frame::Frame* frame) {
  assert(dimensions_.has_parent && contribution.child == dimensions_.children);
  Slot& slot = slots_[contribution.slot];
  const State state = state_of(slot);
  if (state == State::empty || slot.tag < contribution.message) {
    const bool is_free = state == State::empty || state == State::complete;
    return is_free ? SlotEvent::total_early : SlotEvent::window_violation;
  }
  if (slot.tag > contribution.message) {
    return SlotEvent::stale;
  }
  if (const auto event = disagreement(slot, contribution)) {
    return *event;
  }
  switch (state) {
  case State::known:
    return SlotEvent::repeat_held;
  case State::complete:
    return SlotEvent::repeat_complete;
  case State::sent:
    break;
  default:
    return SlotEvent::total_early;
  }
  slot.state = State::known;
  cell(contribution.slot, contribution.child) = frame;
  ++held_;
  return SlotEvent::total;
}

/// Why a packet for the message that the slot holds is not part of it.
std::optional<SlotEvent> SlotTable::disagreement(const Slot& slot,
                                                 const Contribution& contribution) {
  if (const auto event = difference(slot.shape, contribution.shape)) {
    return event;
  }
  return slot.data_bytes == contribution.data_bytes ? std::nullopt
                                                    : std::optional(SlotEvent::disagree_payload);
}

void SlotTable::reclaim(Slot& slot, const Contribution& contribution) {
  assert(state_of(slot) == State::empty || state_of(slot) == State::complete);
  assert(contribution.data_bytes <= dimensions_.mtu && filling_.size() < slots_.size());
  slot.state = State::filling;
  slot.arrived = 0;
  slot.data_bytes = contribution.data_bytes;
  slot.shape = contribution.shape;
  slot.tag = contribution.message;
  slot.first_arrival = contribution.now;
  std::fill_n(&cell(contribution.slot, 0), senders_, nullptr);
  slot.generation = generation_;
  slot.filling_index = filling();
  filling_.push_back(contribution.slot);
}

void SlotTable::stop_filling(Slot& slot) {
  assert(&slots_[filling_[slot.filling_index]] == &slot);
  const std::uint32_t last = filling_.back();
  filling_[slot.filling_index] = last;
  slots_[last].filling_index = slot.filling_index;
  filling_.pop_back();
}

std::span<std::uint8_t> SlotTable::total_room(std::uint32_t slot) {
  assert(dimensions_.has_parent);
  return room(slot, dimensions_.mtu);
}

SlotTable::TotalFrames SlotTable::total_frames_of(std::uint32_t slot) const {
  assert(dimensions_.has_parent && state_of(slots_[slot]) == State::known);
  return {frames_of(slot).first(dimensions_.children - 1u), cell(slot, dimensions_.children)};
}

std::uint32_t fold_frames(std::span<frame::Frame* const> frames, std::size_t skip, const Fold& fold,
                          std::span<std::uint8_t> result) {
  assert(!frames.empty() && frames.size() <= kMaxWorld);
  std::array<std::byte*, kMaxWorld> payloads;
  std::transform(frames.begin(), frames.end(), payloads.begin(), [skip](const frame::Frame* frame) {
    return reinterpret_cast<std::byte*>(frame->payload() + skip);
  });
  fold(reinterpret_cast<std::byte*>(result.data()), std::span(payloads).first(frames.size()),
       result.size());
  return wire::crc32(0, result);
}

bool SlotTable::holds(std::uint16_t sender) const {
  return std::ranges::any_of(filling_, [&](std::uint32_t index) {
    return has(index, sender) && !has_left(slots_[index], sender);
  });
}

/// Whether the sender's frame of an unfinished slot has left with the partial sum.
bool SlotTable::has_left(const Slot& slot, std::uint16_t sender) const {
  return (slot.state == State::sent || slot.state == State::known) &&
         sender + 1u == dimensions_.children;
}

void SlotTable::make_ready(std::uint32_t index, std::uint32_t crc) {
  Slot& slot = slots_[index];
  assert(state_of(slot) == State::filling && slot.arrived == dimensions_.children);
  slot.crc = crc;
  slot.state = State::ready;
}

std::span<frame::Frame* const> SlotTable::release(std::uint32_t index) {
  Slot& slot = slots_[index];
  assert(state_of(slot) == State::ready && held_ >= dimensions_.children);
  assert(!dimensions_.has_parent);
  slot.state = State::complete;
  stop_filling(slot);
  held_ -= dimensions_.children;
  return frames_of(index);
}

frame::Frame& SlotTable::release_partial(std::uint32_t index) {
  Slot& slot = slots_[index];
  assert(dimensions_.has_parent && state_of(slot) == State::ready && held_ != 0);
  slot.state = State::sent;
  --held_;
  return *frames_of(index).back();
}

void SlotTable::release_total(std::uint32_t index, std::uint32_t crc) {
  Slot& slot = slots_[index];
  assert(state_of(slot) == State::known && held_ >= dimensions_.children);
  slot.state = State::complete;
  slot.total_crc = crc;
  stop_filling(slot);
  held_ -= dimensions_.children; // the parent's frame, and all children's but the last one's
}

SlotResult SlotTable::result_of(std::uint32_t index) const {
  const Slot& slot = slots_[index];
  assert(state_of(slot) == State::complete);
  return dimensions_.has_parent ? SlotResult{room(index, dimensions_.mtu), slot.total_crc}
                                : SlotResult{room(index, 0), slot.crc};
}

SlotResult SlotTable::partial_of(std::uint32_t index) const {
  assert(dimensions_.has_parent && has_sent(index, slots_[index].tag));
  return {room(index, 0), slots_[index].crc};
}

std::bitset<kMaxWorld> SlotTable::children_in(std::uint32_t slot) const {
  std::bitset<kMaxWorld> children;
  for (std::uint16_t child = 0; child < dimensions_.children; ++child) {
    children[child] = has(slot, child);
  }
  return children;
}

std::vector<WaitingSlot> SlotTable::waiting() const {
  std::vector<WaitingSlot> copies;
  copies.reserve(filling_.size());
  for (const std::uint32_t index : filling_) {
    const Slot& slot = slots_[index];
    if (slot.state == State::filling || slot.state == State::sent) {
      copies.push_back({.slot = index,
                        .message = slot.tag,
                        .first_arrival = slot.first_arrival,
                        .children = children_in(index),
                        .is_sent = slot.state == State::sent});
    }
  }
  return copies;
}

std::vector<StuckSlot> SlotTable::longest_of(std::vector<WaitingSlot> waiting, std::size_t limit,
                                             std::uint64_t now) const {
  const std::size_t shown = std::min(limit, waiting.size());
  std::partial_sort(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(shown),
                    waiting.end(), [](const WaitingSlot& a, const WaitingSlot& b) {
                      return std::tie(a.first_arrival, a.message, a.slot) <
                             std::tie(b.first_arrival, b.message, b.slot);
                    });
  waiting.resize(shown);
  std::vector<StuckSlot> stuck;
  for (const WaitingSlot& slot : waiting) {
    StuckSlot& entry = stuck.emplace_back();
    entry.message = slot.message;
    entry.packet = slot.slot % dimensions_.packets_per_message;
    entry.waiting_ns = now - slot.first_arrival;
    for (std::uint16_t child = 0; child < dimensions_.children; ++child) {
      if (!slot.children[child]) {
        entry.missing.push_back(child);
      }
    }
    if (slot.is_sent) {
      entry.missing.push_back(dimensions_.children);
    }
  }
  return stuck;
}

} // namespace weir::slot
