// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/device_list.hpp"

#include <span>
#include <string>

namespace weir::app {

/// A line for each device, with what --device, --transport and --gid-index would say.
std::string device_table(std::span<const host::DeviceInfo> devices);

} // namespace weir::app
