// SPDX-License-Identifier: BSD-3-Clause
#include "stage/ring_state.hpp"

#include <algorithm>

namespace weir::stage {

slot::SlotTable::Dimensions dimensions_of(const ring::Ring& ring) {
  const ring::RingSpec& spec = ring.spec();
  return {ring.children(), spec.depth(), spec.packets_per_message(), spec.mtu};
}

RingState::RingState(const ring::Ring& ring, std::pmr::memory_resource* memory)
    : slots(dimensions_of(ring), memory), pins(ring.children()),
      packets_per_message(ring.spec().packets_per_message()), answers(ring.children()),
      results(ring.children()), resending(ring.children()) {}

std::optional<Stall> RingState::stall() const {
  if (!slots.is_filling(due.slot(), due.message)) {
    return std::nullopt;
  }
  return Stall{due.slot(), std::max(slots.first_arrival_of(due.slot()), due.since_ns)};
}

void RingState::advance_due(const wire::OpcodeInfo& leaving, std::uint64_t now_ns) {
  due.since_ns = now_ns;
  ++due.packet;
  if (!leaving.ends_message()) {
    return;
  }
  ++due.message;
  due.packet = 0;
  due.first_slot += packets_per_message;
  if (due.first_slot == slots.slots()) {
    due.first_slot = 0;
  }
}

} // namespace weir::stage
