// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/current.hpp"
#include "ring/ring_set.hpp"

namespace weir::ring {

/// The set of rings that all lcores use.
using CurrentRings = Current<RingSet>;

} // namespace weir::ring
