// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/group_options.hpp"
#include "host/switch_rings/module.h"

#include <cstddef>
#include <string>
#include <vector>

namespace weir::host {

/// Of the module's reasons.
inline constexpr std::size_t kWhyBytes = 1024;

/// The options, with the environment in place of what they leave open. Has an address, which may be
/// empty.
SwitchAccess switch_access_of(const GroupOptions& options);

/// The module's text for it: a path alone is a Unix socket.
std::string server_of(const std::string& address);

/// An order of nothing yet. Points into both.
weir_hold_order order_to(const std::string& server, const SwitchAccess& access);

/// For orders. Point into the texts.
std::vector<const char*> pointers_to(const std::vector<std::string>& texts);

} // namespace weir::host
