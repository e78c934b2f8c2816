// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/switch_backend.hpp"

#include "report/answers.hpp"

#include <algorithm>

namespace weir::rpc {

std::vector<ListedRing> SwitchBackend::rings() {
  std::vector<ListedRing> rings;
  for (const stage::RingSnapshot& ring : weir_.ring_snapshots()) {
    const ring::RingSpec& spec = weir_.rings()[ring.ring];
    if (weir_.ring_set().ring_with_id(spec.id) != ring.ring) {
      continue; // withdrawn
    }
    rings.push_back(
        {.spec = spec,
         .connected = static_cast<std::uint16_t>(std::ranges::count_if(
             ring.children, [](const conn::ChildStatus& child) { return child.connected; })),
         .held = ring.held,
         .slots_completed = ring.counters.slots_completed,
         .results = ring.counters.results});
  }
  return rings;
}

std::vector<std::string> SwitchBackend::port_names() {
  return report::port_names(weir_);
}

void SwitchBackend::check_lcores() {
  weir_.accounting();
}

} // namespace weir::rpc
