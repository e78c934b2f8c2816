// SPDX-License-Identifier: BSD-3-Clause
#include "plan/algorithms.hpp"

#include "plan/schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <set>
#include <utility>

namespace weir::plan {
namespace {

constexpr std::array<std::pair<Algorithm, std::string_view>, 6> kNames{{
    {Algorithm::ring, "ring"},
    {Algorithm::ring_across, "ring-across"},
    {Algorithm::double_binary_tree, "dbtree"},
    {Algorithm::ring_2d, "2d-ring"},
    {Algorithm::hdrm, "hdrm"},
    {Algorithm::multitree, "multitree"},
}};

void require_participants(const Topology& topology, std::span<const VertexId> participants) {
  if (participants.size() < 2) {
    throw PlanError(fmt::format("{} nodes take part; allowed: two at least", participants.size()));
  }
  if (participants.size() > kMostParticipants) {
    throw PlanError(
        fmt::format("{} nodes take part; allowed: {} at most, as tables grow with their square",
                    participants.size(), kMostParticipants));
  }
  std::set<VertexId> seen;
  for (const VertexId node : participants) {
    if (node >= topology.vertex_count() || !topology.is_node(node)) {
      throw PlanError(fmt::format("vertex {} takes part; allowed: nodes, 0 to {}", node,
                                  topology.node_count() - 1));
    }
    if (!seen.insert(node).second) {
      throw PlanError(
          fmt::format("{} takes part twice; allowed: each node once", topology.name(node)));
    }
  }
}

Schedule schedule_of(const Topology& topology, Algorithm algorithm,
                     std::span<const VertexId> participants, Forest& forest) {
  switch (algorithm) {
  case Algorithm::ring:
    return ring_schedule(topology, neighbourly_order(topology, participants));
  case Algorithm::ring_across:
    return ring_schedule(topology, crossing_order(topology, participants));
  case Algorithm::double_binary_tree:
    return double_binary_tree_schedule(topology, participants);
  case Algorithm::ring_2d:
    return ring_2d_schedule(topology);
  case Algorithm::hdrm:
    return hdrm_schedule(topology);
  case Algorithm::multitree:
    break;
  }
  forest = grow_forest(topology, participants);
  return multitree_schedule(topology, forest);
}

} // namespace

std::string_view name_of(Algorithm algorithm) {
  return std::ranges::find(kNames, algorithm, &std::pair<Algorithm, std::string_view>::first)
      ->second;
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  const auto entry =
      std::ranges::find(kNames, name, &std::pair<Algorithm, std::string_view>::second);
  return entry == kNames.end() ? std::nullopt : std::optional(entry->first);
}

std::string why_not(Algorithm algorithm, const Topology& topology,
                    std::span<const VertexId> participants) {
  const bool is_whole = participants.size() == topology.node_count();
  switch (algorithm) {
  case Algorithm::ring_across:
    return topology.is_direct() ? "needs switches to cross" : "";
  case Algorithm::ring_2d:
    return topology.grid && is_whole ? "" : "needs every node of a torus or mesh";
  case Algorithm::hdrm:
    if (!topology.bigraph || !is_whole || !std::has_single_bit(participants.size()) ||
        !std::has_single_bit(topology.bigraph->switches)) {
      return "needs every node of a BiGraph, and powers of two of nodes and switches";
    }
    return "";
  default:
    return "";
  }
}

std::vector<VertexId> every_node(const Topology& topology) {
  std::vector<VertexId> nodes(topology.node_count());
  std::iota(nodes.begin(), nodes.end(), VertexId{0});
  return nodes;
}

Plan make_plan(const Topology& topology, Algorithm algorithm,
               std::span<const VertexId> participants) {
  require_participants(topology, participants);
  const std::string reason = why_not(algorithm, topology, participants);
  if (!reason.empty()) {
    throw PlanError(fmt::format("{} {}", name_of(algorithm), reason));
  }
  Plan plan;
  plan.algorithm = algorithm;
  plan.participants.assign(participants.begin(), participants.end());
  plan.schedule = schedule_of(topology, algorithm, participants, plan.forest);
  return plan;
}

Plan make_plan(const Topology& topology, Algorithm algorithm) {
  return make_plan(topology, algorithm, every_node(topology));
}

} // namespace weir::plan
