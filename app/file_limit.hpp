// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/resource.h>

namespace weir::app {

/// Raises this process's soft limit of open files to the hard one, or to what its unit has
/// (config/*.service.in), if that is less. Returns the limit.
rlim_t raise_file_limit();

} // namespace weir::app
