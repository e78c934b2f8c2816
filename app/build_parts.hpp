// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

#include <string_view>

namespace weir::app {

/// Whether this program was built with all that a configuration asks for. Throws
/// config::ConfigError; `file` is its file, for the error.
void check_build(const config::Config& config, std::string_view file);

} // namespace weir::app
