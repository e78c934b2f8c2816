// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Regions as messages of the control service.

#include "config/config.hpp"
#include "control/region_seen.hpp"

#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// `config` has the ports' names. Throws WrongMessage.
control::WantedRegion region_of(const v1::Region& message, const config::Config& config);

/// The same.
void write(const control::MadeRegion& made, const config::Config& config, v1::HeldRegion& message);

} // namespace weir::rpc
