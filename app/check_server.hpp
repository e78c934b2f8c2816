// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

#include <cstdint>

namespace weir::app {

enum class Form : std::uint8_t { text, json };

/// Whether a switch would start.
enum class Forecast : std::uint8_t { starts, does_not };

/// Asks this machine whether a switch with this configuration, which has its lcores, would start
/// and be fast, and prints each answer, with the commands that mend what is not right. Changes
/// nothing, opens no device and needs no EAL.
Forecast check_server(const config::Config& config, Form form);

} // namespace weir::app
