// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/leases.hpp"
#include "control/loops.hpp"
#include "control/region_seen.hpp"
#include "events/event.hpp"

namespace weir::app {

/// What control does to rings, regions and ports by itself, as lines of the log.
events::Event event_of(const control::Reclaimed& reclaimed);
events::Event event_of(const control::LoopNews& news);
events::Event event_of(const control::RegionNews& news);
events::Event cut_off_event(const control::TendedRing& ring);
events::Event cut_off_event(const control::RegionSeen& region);

} // namespace weir::app
