// SPDX-License-Identifier: BSD-3-Clause
#include "stage/ring_state.hpp"

#include <algorithm>
#include <cassert>

namespace weir::stage {

slot::SlotTable::Dimensions dimensions_of(const ring::Ring& ring) {
  const ring::RingSpec& spec = ring.spec();
  return {.children = ring.children(),
          .messages = spec.depth(),
          .packets_per_message = spec.packets_per_message(),
          .mtu = spec.mtu,
          .has_parent = !ring.is_root()};
}

RingState::RingState(const ring::Ring& ring, std::pmr::memory_resource* memory)
    : slots(dimensions_of(ring), memory), pins(ring.children()), is_root(ring.is_root()),
      made_results(is_root ? ring.children() : std::uint16_t{0}),
      packets_per_message(ring.spec().packets_per_message()), answers(ring.senders()),
      results(ring.senders()), resending(ring.senders()) {}

std::optional<Stall> RingState::stall() const {
  if (!slots.is_filling(due.slot(), due.message)) {
    return std::nullopt;
  }
  return Stall{due.slot(), std::max(slots.first_arrival_of(due.slot()), due.since_ns)};
}

std::optional<Stall> RingState::unfinished() const {
  const Due& oldest = is_root ? due : total_due;
  if (!slots.is_unfinished(oldest.slot(), oldest.message)) {
    return std::nullopt;
  }
  return Stall{oldest.slot(), std::max(slots.first_arrival_of(oldest.slot()), oldest.since_ns)};
}

std::optional<Stall> RingState::missing_total() const {
  const auto oldest = unfinished();
  const bool is_missing = !is_root && oldest && slots.is_sent(oldest->slot, total_due.message);
  return is_missing ? oldest : std::nullopt;
}

std::optional<Stall> RingState::wait() const {
  const auto for_children = stall();
  return for_children ? for_children : missing_total();
}

std::vector<std::uint16_t> RingState::late_senders() const {
  std::vector<std::uint16_t> late;
  const auto for_children = stall();
  for (std::uint16_t child = 0; for_children && child < slots.children(); ++child) {
    if (!slots.has(for_children->slot, child)) {
      late.push_back(child);
    }
  }
  if (!for_children && missing_total()) {
    late.push_back(slots.children());
  }
  return late;
}

void RingState::advance(Due& leaving, const wire::OpcodeInfo& kind, std::uint64_t now_ns) const {
  assert(leaving.packet < packets_per_message && leaving.slot() < slots.slots());
  leaving.since_ns = now_ns;
  ++leaving.packet;
  if (!kind.ends_message()) {
    return;
  }
  ++leaving.message;
  leaving.packet = 0;
  leaving.first_slot += packets_per_message;
  if (leaving.first_slot == slots.slots()) {
    leaving.first_slot = 0;
  }
}

} // namespace weir::stage
