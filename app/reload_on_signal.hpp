// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/reload.hpp"
#include "events/event_log.hpp"
#include "service_manager.hpp"

namespace weir::app {

/// From now on SIGHUP does not end the process: it asks for a reload of the configuration. Where it
/// is ignored, it stays so.
void catch_reload_signal();

/// Reloads it if SIGHUP has come since the last call. Logs a line for each change, or one that says
/// why there is none.
void reload_if_asked(control::Reload& reload, ServiceManager& service, events::EventLog& log);

} // namespace weir::app
