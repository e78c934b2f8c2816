// SPDX-License-Identifier: BSD-3-Clause
#include "stage/ring_state.hpp"

namespace weir::stage {

slot::SlotTable::Dimensions dimensions_of(const ring::Ring& ring) {
  const ring::RingSpec& spec = ring.spec();
  return {ring.children(), spec.depth(), spec.packets_per_message(), spec.mtu};
}

RingState::RingState(const ring::Ring& ring, std::pmr::memory_resource* memory)
    : slots(dimensions_of(ring), memory) {
  pins.reserve(ring.children());
}

} // namespace weir::stage
