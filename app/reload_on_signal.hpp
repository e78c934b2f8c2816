// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"
#include "service_manager.hpp"

#include <string>

namespace weir::app {

/// From now on SIGHUP does not end the process: it asks for a reload of the configuration.
void catch_reload_signal();

/// Reloads it if SIGHUP has come since the last call. Returns what is to be logged: a line for each
/// change, or one that says why there is none; empty if nobody asked.
std::string reload_if_asked(control::Switch& weir, ServiceManager& service);

} // namespace weir::app
