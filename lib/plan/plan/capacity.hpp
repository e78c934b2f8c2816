// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/topology.hpp"

#include <cstdint>
#include <vector>

namespace weir::plan {

/// By link: how many edges of one unit of bandwidth it is (MultiTree §VII-B). The unit is the
/// greatest rate that divides all rates. If the fastest link would then have more than kMostUnits,
/// the unit is the lowest rate; the part of a link beyond whole units is not used.
std::vector<std::uint32_t> unit_capacities(const Topology& topology);
inline constexpr std::uint64_t kMostUnits = 64;

/// bit/s of one unit.
std::uint64_t unit_rate(const Topology& topology);

} // namespace weir::plan
