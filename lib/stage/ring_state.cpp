// SPDX-License-Identifier: BSD-3-Clause
#include "stage/ring_state.hpp"

namespace weir::stage {

slot::SlotTable::Dimensions dimensions_of(const ring::RingSpec& ring) {
  return {ring.world(), ring.depth(), ring.packets_per_message(), ring.mtu};
}

RingState::RingState(const ring::RingSpec& spec, std::pmr::memory_resource* memory)
    : slots(dimensions_of(spec), memory) {
  pins.reserve(spec.world());
}

} // namespace weir::stage
