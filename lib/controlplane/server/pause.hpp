// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "server/facts.hpp"

#include <functional>
#include <optional>
#include <string>

namespace weir::server {

/// How an interface is paused. Nothing: its driver does not say.
using PauseOf = std::function<std::optional<Pause>(const std::string& interface)>;

/// As the kernel's driver tells it (ethtool).
std::optional<Pause> pause_of_interface(const std::string& interface);

} // namespace weir::server
