// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The options of weir/weir.h as those of the library.

#include "host/base/group_options.hpp"
#include "weir/weir.h"

namespace weir::host::c {

/// The caller's, with the defaults where its struct is shorter. Throws std::invalid_argument.
GroupOptions read_options(const weir_context_options* options);

/// The same. `device` has what the context knows, or the group that is shrunk.
GroupOptions read_options(const weir_group_options* options, GroupOptions device);

} // namespace weir::host::c
