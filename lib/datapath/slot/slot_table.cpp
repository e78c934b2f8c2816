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

std::optional<SlotEvent> disagreement(const wire::MessageShape& a, const wire::MessageShape& b) {
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
  return slots() * (sizeof(Slot) + sizeof(std::uint32_t) + children * sizeof(frame::Frame*) + mtu);
}

SlotTable::SlotTable(const Dimensions& dimensions, std::pmr::memory_resource* memory)
    : dimensions_(dimensions), slots_(dimensions.slots(), memory),
      frames_(dimensions.slots() * dimensions.children, memory),
      results_(dimensions.slots() * dimensions.mtu, memory), filling_(memory) {
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
    if (state == State::filling || state == State::ready) {
      return SlotEvent::window_violation;
    }
    reclaim(slot, contribution);
    return store(slot, contribution, frame);
  }
  if (const auto event = disagreement(slot.shape, contribution.shape)) {
    return *event;
  }
  if (slot.data_bytes != contribution.data_bytes) {
    return SlotEvent::disagree_payload;
  }
  if (state == State::complete) {
    return SlotEvent::repeat_complete;
  }
  if (has(contribution.slot, contribution.child)) {
    return SlotEvent::repeat_held;
  }
  return store(slot, contribution, frame);
}

void SlotTable::reclaim(Slot& slot, const Contribution& contribution) {
  slot.state = State::filling;
  slot.arrived = 0;
  slot.data_bytes = contribution.data_bytes;
  slot.shape = contribution.shape;
  slot.tag = contribution.message;
  slot.first_arrival = contribution.now;
  std::fill_n(&cell(contribution.slot, 0), dimensions_.children, nullptr);
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

std::span<frame::Frame* const> SlotTable::frames_of(std::uint32_t slot) const {
  return {frames_.data() + std::size_t{slot} * dimensions_.children, dimensions_.children};
}

std::span<std::uint8_t> SlotTable::result_room(std::uint32_t slot) {
  return {results_.data() + std::size_t{slot} * dimensions_.mtu, slots_[slot].data_bytes};
}

std::uint32_t fold_frames(std::span<frame::Frame* const> frames, std::size_t skip, const Fold& fold,
                          std::span<std::uint8_t> result) {
  std::array<std::byte*, kMaxWorld> payloads;
  std::transform(frames.begin(), frames.end(), payloads.begin(), [skip](const frame::Frame* frame) {
    return reinterpret_cast<std::byte*>(frame->payload() + skip);
  });
  fold(reinterpret_cast<std::byte*>(result.data()), std::span(payloads).first(frames.size()),
       result.size());
  return wire::crc32(0, result);
}

bool SlotTable::holds(std::uint16_t child) const {
  return std::ranges::any_of(filling_, [&](std::uint32_t index) { return has(index, child); });
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
  slot.state = State::complete;
  stop_filling(slot);
  held_ -= dimensions_.children;
  return frames_of(index);
}

SlotResult SlotTable::result_of(std::uint32_t index) const {
  const Slot& slot = slots_[index];
  assert(state_of(slot) == State::complete);
  const std::span data(results_.data() + std::size_t{index} * dimensions_.mtu, slot.data_bytes);
  return {data, slot.crc};
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
    if (slot.state == State::filling) {
      copies.push_back({index, slot.tag, slot.first_arrival, children_in(index)});
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
  }
  return stuck;
}

} // namespace weir::slot
