// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "yaml/error.hpp"

namespace weir::config {

/// What is wrong with a configuration, in its file or in what it asks of this machine.
using ConfigError = yaml::Error;

} // namespace weir::config
