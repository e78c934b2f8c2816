// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

#include <optional>
#include <string>

namespace weir::server {

/// A port's PCI device as the kernel names it, "0000:3b:00.0", where the file may leave out the
/// domain. Nothing for a virtual device.
std::optional<std::string> pci_address(const config::PortConfig& port);

} // namespace weir::server
