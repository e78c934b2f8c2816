// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

namespace weir::app {

/// Whether this process may have the threads and open files that it will need. EAL and gRPC abort
/// where they lack one, and name no cause. Raises the soft limit of open files to the hard one.
/// Throws std::runtime_error with what was found and what is needed.
void check_process_limits(const config::Config& config);

/// Threads come and go, such as those that write captures, and what each has had would stay with
/// its arena. So they share few, and large blocks go back to the kernel at once (mallopt(3)).
/// Before there are threads.
void bound_heap();

} // namespace weir::app
