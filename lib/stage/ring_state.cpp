// SPDX-License-Identifier: BSD-3-Clause
#include "stage/ring_state.hpp"

namespace weir::stage {

slot::SlotTable::Dimensions dimensions_of(const ring::Ring& ring) {
  const ring::RingSpec& spec = ring.spec();
  return {ring.children(), spec.depth(), spec.packets_per_message(), spec.mtu};
}

std::size_t kept_header_bytes(const ring::Ring& ring) {
  return std::size_t{ring.children()} * ring.spec().depth() * sizeof(recovery::MessageHeaders);
}

RingState::RingState(const ring::Ring& ring, std::pmr::memory_resource* memory)
    : slots(dimensions_of(ring), memory), messages(ring.spec().depth()),
      packets_per_message(ring.spec().packets_per_message()), answers(ring.children()),
      results(ring.children()), headers(std::size_t{ring.children()} * messages, memory) {
  pins.reserve(ring.children());
}

} // namespace weir::stage
