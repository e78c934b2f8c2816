// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

namespace weir::app {

/// Whether this process may have the threads and open files that it will need. EAL and gRPC abort
/// where they lack one, and name no cause. Raises the soft limit of open files to the hard one.
/// Throws std::runtime_error with what was found and what is needed.
void check_process_limits(const config::Config& config);

} // namespace weir::app
