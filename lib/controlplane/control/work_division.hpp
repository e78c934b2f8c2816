// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/placement.hpp"
#include "ring/ring_set.hpp"

#include <string>
#include <vector>

namespace weir::control {

/// In words, a line each: which rings each worker lcore has, and where a job has fewer workers than
/// it could. Empty for a switch with one worker, or without rings.
std::vector<std::string> division_of(const Placement& placement, const ring::RingSet& rings);

} // namespace weir::control
