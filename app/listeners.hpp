// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/switch.hpp"
#include "deferred_listener.hpp"
#include "events/event_log.hpp"
#include "metrics/endpoint.hpp"
#include "rpc/endpoint.hpp"

#include <string>

namespace weir::app {

using ControlListener = DeferredListener<rpc::Endpoint, rpc::EndpointError>;
using MetricsListener = DeferredListener<metrics::Endpoint, metrics::EndpointError>;

/// The control service's. EAL is up: an address that the file does not tell is in its folder.
/// `weir` and `log` outlive it.
ControlListener control_listener(control::Switch& weir, config::ControlConfig where,
                                 events::EventLog& log);

/// The metrics'. Empty `listen`: none are wanted.
MetricsListener metrics_listener(control::Switch& weir, const std::string& listen,
                                 events::EventLog& log);

} // namespace weir::app
