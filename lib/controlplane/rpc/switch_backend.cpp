// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/switch_backend.hpp"

#include <algorithm>

namespace weir::rpc {

std::vector<ListedRing> SwitchBackend::rings() {
  const control::RingsSeen seen = weir_.inspector().rings();
  std::vector<ListedRing> rings;
  for (const stage::RingSnapshot& ring : seen.rings) {
    rings.push_back(
        {.spec = seen.set->rings()[ring.ring].spec(),
         .connected = static_cast<std::uint16_t>(std::ranges::count_if(
             ring.children, [](const conn::ChildStatus& child) { return child.connected; })),
         .held = ring.held,
         .slots_completed = ring.counters.slots_completed,
         .results = ring.counters.results,
         .draining_s = ring.draining_ms ? std::optional(*ring.draining_ms / 1000) : std::nullopt});
  }
  return rings;
}

void SwitchBackend::check_lcores() {
  weir_.inspector().accounting();
}

} // namespace weir::rpc
