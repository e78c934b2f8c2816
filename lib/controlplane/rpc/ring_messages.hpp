// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Rings as messages of the control service.

#include "config/config.hpp"
#include "rpc/backend.hpp"

#include <chrono>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// `config` has the ports' names.
void write(const ring::RingSpec& spec, const config::Config& config, v1::Ring& message);

/// The same.
void write(const ListedRing& ring, const config::Config& config, v1::ListedRing& message);

/// The ring as a configuration file has it: its rules and their words are that file's. Throws
/// config::ConfigError.
ring::RingSpec ring_of(const v1::Ring& message, const config::Config& config);

/// The same for one that is held. A ring whose id the switch is to choose has id 0. Throws
/// WrongMessage too.
ring::RingSpec ring_of(const v1::HoldRingRequest& request, const config::Config& config);

/// Throws WrongMessage.
std::chrono::seconds quiet_of(const v1::DrainRingRequest& request);

} // namespace weir::rpc
