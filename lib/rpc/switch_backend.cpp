// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/switch_backend.hpp"

#include "report/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace weir::rpc {

std::vector<ListedRing> SwitchBackend::rings() {
  const control::RingsSeen seen = weir_.ring_snapshots();
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

ring::RingBirth SwitchBackend::add_ring(const ring::RingSpec& ring) {
  if (weir_.ring_set()->ring_with_id(ring.id)) {
    throw RingExists(fmt::format("id: found {}, which a ring has; allowed: any but {}", ring.id,
                                 fmt::join(report::ring_ids(weir_), ", ")));
  }
  return weir_.add_ring(ring);
}

void SwitchBackend::remove_orphan(std::uint32_t id, ring::RingBirth birth) {
  if (weir_.withdraw_ring_born(birth)) {
    fmt::print(stderr, "weir: ring {}: withdrawn: its owner's call HoldRing has ended\n", id);
  }
}

void SwitchBackend::check_lcores() {
  weir_.accounting();
}

} // namespace weir::rpc
