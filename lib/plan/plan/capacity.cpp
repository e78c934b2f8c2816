// SPDX-License-Identifier: BSD-3-Clause
#include "plan/capacity.hpp"

#include <algorithm>
#include <numeric>

namespace weir::plan {

std::uint64_t unit_rate(const Topology& topology) {
  std::uint64_t common = 0;
  std::uint64_t lowest = UINT64_MAX;
  std::uint64_t highest = 0;
  for (const Link& link : topology.links()) {
    common = std::gcd(common, link.traits.bits_per_second);
    lowest = std::min(lowest, link.traits.bits_per_second);
    highest = std::max(highest, link.traits.bits_per_second);
  }
  return common == 0 || highest / common > kMostUnits ? lowest : common;
}

std::vector<std::uint32_t> unit_capacities(const Topology& topology) {
  const std::uint64_t unit = unit_rate(topology);
  std::vector<std::uint32_t> capacities;
  capacities.reserve(topology.links().size());
  for (const Link& link : topology.links()) {
    capacities.push_back(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(link.traits.bits_per_second / unit, topology.node_count())));
  }
  return capacities;
}

} // namespace weir::plan
