// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"
#include "events/event_log.hpp"
#include "service_manager.hpp"

#include <atomic>
#include <chrono>

namespace weir::app {

/// Before the switch stops: no new incarnation begins, and running collectives may end. Returns
/// when no ring is busy, after `limit`, or soon after `at_once` becomes true. Logs which rings it
/// waits for, and which are then cut off.
void drain(control::Switch& weir, std::chrono::seconds limit, const std::atomic<bool>& at_once,
           ServiceManager& service, events::EventLog& log);

} // namespace weir::app
