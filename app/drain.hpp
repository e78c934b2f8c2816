// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/inspector.hpp"
#include "control/ring_admin.hpp"
#include "events/event_log.hpp"
#include "service_manager.hpp"

#include <atomic>

namespace weir::app {

/// Before the switch stops: no new incarnation begins, and running collectives may end. Returns
/// when no ring is busy, after `drain_s`, or soon after `at_once` becomes true. Logs which rings it
/// waits for, and which are then cut off.
void drain(control::RingAdmin& rings, const control::Inspector& inspector,
           const std::atomic<bool>& at_once, ServiceManager& service, events::EventLog& log);

} // namespace weir::app
