// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/switch_backend.hpp"

#include "control/port.hpp"
#include "ring/ring.hpp"

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

namespace {

/// Of the children whose packet the oldest slot lacks. A switch below knows for itself whom it
/// waits for.
std::vector<std::uint16_t> ranks_of(const std::vector<std::uint16_t>& children,
                                    const ring::Ring& ring) {
  std::vector<std::uint16_t> ranks;
  for (const std::uint16_t child : children) {
    if (ring.is_rank(child)) {
      ranks.push_back(ring.child(child).ranks.first);
    }
  }
  return ranks;
}

TendedRing seen(const control::TendedRing& tended, std::uint64_t now_ns) {
  const ring::Ring ring(tended.spec);
  return {.id = tended.spec.id,
          .birth = tended.care.birth,
          .silent_ms = frame::elapsed_ns(tended.life.heard_ns, now_ns) / 1'000'000,
          .waits_for = ranks_of(tended.life.waited_for, ring),
          .room = control::room_of({&ring})};
}

} // namespace

TendedSwitch SwitchBackend::tended() {
  const control::TendedRings tended = weir_.inspector().tended_rings();
  TendedSwitch all{.rings = {}, .ports = {}, .room = weir_.rings().room()};
  for (const control::TendedRing& ring : tended.rings) {
    all.rings.push_back(seen(ring, tended.now_ns));
  }
  for (const auto& port : weir_.inspector().ports()) {
    if (port) {
      all.ports.push_back({port->name(), port->is_down()});
    }
  }
  return all;
}

void SwitchBackend::check_lcores() {
  weir_.inspector().accounting();
}

} // namespace weir::rpc
