// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a switch that is to stop would cut off. No threads, no clock, no EAL.

#include "control/leases.hpp"

#include <string>
#include <vector>

namespace weir::control {

/// The rings with a collective under way whose end can be awaited (stage::RingLife::is_busy).
std::vector<TendedRing> busy_of(std::vector<TendedRing> rings);

/// "7, 9".
std::string ids_of(const std::vector<TendedRing>& rings);

/// "ring 7: cut off: …": its slots, and the ranks that they waited for.
std::string cut_off_sentence(const TendedRing& ring);

} // namespace weir::control
