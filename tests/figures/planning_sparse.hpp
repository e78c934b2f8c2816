// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "figure.hpp"

namespace weir::figures::planning {

/// PL4: bytes on all links for sparse gradients, by four methods.
void sparse_traffic(const Settings& settings, Results& results);

} // namespace weir::figures::planning
