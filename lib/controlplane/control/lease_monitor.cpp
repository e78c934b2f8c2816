// SPDX-License-Identifier: BSD-3-Clause
#include "control/lease_monitor.hpp"

#include "control/no_such_ring.hpp"
#include "control/ring_admin.hpp"
#include "lcore/clock.hpp"

namespace weir::control {

LeaseMonitor::LeaseMonitor(RingAdmin& rings) : rings_(rings) {
  listening_.look(lcore::Clock().now().ns);
}

/// A switch whose lcores hang hears nobody: the next look counts from then.
void LeaseMonitor::see(const Look& look) {
  listening_.look(look.now_ns);
  for (const TendedRing& ring : look.tended) {
    if (grounds_to_reclaim(ring, listening_, look.now_ns)) {
      reclaim(ring.spec.id);
    }
  }
}

/// Unless it woke up since the look.
void LeaseMonitor::reclaim(std::uint32_t ring) {
  try {
    rings_.reclaim_if(ring, [this](const TendedRing& now_seen, std::uint64_t now_ns) {
      return grounds_to_reclaim(now_seen, listening_, now_ns);
    });
  } catch (const NoSuchRing&) { // somebody else has withdrawn it
  }
}

} // namespace weir::control
