// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/inspector.hpp"
#include "control/region_admin.hpp"
#include "control/ring_admin.hpp"
#include "events/event_log.hpp"
#include "service_manager.hpp"

#include <atomic>

namespace weir::app {

/// Before the switch stops: no new incarnation begins, no region is made, and running collectives
/// and writes may end. Returns when no ring is busy and no region holds a packet, after `drain_s`,
/// or soon after `at_once` becomes true. Logs what it waits for, and what is then cut off.
void drain(control::RingAdmin& rings, control::RegionAdmin& regions,
           const control::Inspector& inspector, const std::atomic<bool>& at_once,
           ServiceManager& service, events::EventLog& log);

} // namespace weir::app
