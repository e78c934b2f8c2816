// SPDX-License-Identifier: BSD-3-Clause
#include "plan/capacity.hpp"
#include "plan/schedule_builder.hpp"
#include "plan/schedules.hpp"

#include <algorithm>

namespace weir::plan {
namespace {

/// What one node can send in a step: the units of all its outgoing links.
std::uint32_t channels_of(const Topology& topology, const Forest& forest) {
  const std::vector<std::uint32_t> capacity = unit_capacities(topology);
  std::uint32_t most = 1;
  for (const Tree& tree : forest.trees) {
    std::uint32_t units = 0;
    for (const LinkId link : topology.outgoing(tree.root)) {
      units += capacity[link];
    }
    most = std::max(most, units);
  }
  return most;
}

} // namespace

Schedule multitree_schedule(const Topology& topology, const Forest& forest) {
  ScheduleBuilder builder(topology, static_cast<std::uint32_t>(forest.trees.size()));
  std::vector<LinkId> way_back;
  for (FlowId flow = 0; flow < forest.trees.size(); ++flow) {
    for (const TreeEdge& edge : forest.trees[flow].edges) {
      const auto route = std::span(forest.routes).subspan(edge.route.begin, edge.route.count);
      way_back.assign(route.rbegin(), route.rend());
      std::ranges::transform(way_back, way_back.begin(), Topology::reverse_of);
      builder.add({Operation::reduce,
                   flow,
                   edge.child,
                   edge.parent,
                   forest.step_count - edge.step + 1,
                   {flow, 1},
                   {}},
                  way_back);
      builder.add({Operation::gather,
                   flow,
                   edge.parent,
                   edge.child,
                   forest.step_count + edge.step,
                   {flow, 1},
                   {}},
                  route);
    }
  }
  return std::move(builder).finish(channels_of(topology, forest), Lockstep::by_nops);
}

} // namespace weir::plan
