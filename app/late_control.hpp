// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/switch.hpp"
#include "late_endpoint.hpp"
#include "rpc/endpoint.hpp"

namespace weir::app {

/// The control service.
class LateControl : public LateEndpoint<rpc::Endpoint, rpc::EndpointError> {
 public:
  /// EAL is up: an address that the file does not tell is in its folder. `weir` outlives this.
  LateControl(control::Switch& weir, config::ControlConfig where, events::EventLog& log);
};

} // namespace weir::app
