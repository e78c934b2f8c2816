// SPDX-License-Identifier: BSD-3-Clause
#include "control/caretaker.hpp"

#include "lcore/clock.hpp"

namespace weir::control {
namespace {

Listening listening_from_now() {
  Listening listening;
  listening.look(lcore::Clock().now().ns);
  return listening;
}

} // namespace

Caretaker::Caretaker(Switch& weir)
    : weir_(weir), listening_(listening_from_now()), looks_(kPeriod, [this] { look(); }) {}

void Caretaker::look() {
  try {
    const TendedRings seen = weir_.inspector().tended_rings();
    listening_.look(seen.now_ns);
    for (const TendedRing& ring : seen.rings) {
      if (grounds_to_reclaim(ring, listening_, seen.now_ns)) {
        reclaim(ring.spec.id);
      }
    }
  } catch (const lcore::LcoreError&) { // who hangs has heard nobody: the next look counts from then
  }
}

/// Unless it woke up since the look.
void Caretaker::reclaim(std::uint32_t ring) {
  try {
    weir_.rings().reclaim_if(ring, [this](const TendedRing& now_seen, std::uint64_t now_ns) {
      return grounds_to_reclaim(now_seen, listening_, now_ns);
    });
  } catch (const NoSuchRing&) { // somebody else has withdrawn it
  }
}

} // namespace weir::control
