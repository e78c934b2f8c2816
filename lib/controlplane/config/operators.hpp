// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "program/loaded_operators.hpp"

namespace weir::config {

/// Those that a configuration names, from their files, checked and tried. Throws ConfigError.
program::LoadedOperators operators_of(const Config& config);

} // namespace weir::config
