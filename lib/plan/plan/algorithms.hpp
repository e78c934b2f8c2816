// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Plans by algorithm. A plan's schedule is all that a simulator needs.

#include "plan/schedule.hpp"
#include "plan/topology.hpp"
#include "plan/tree.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::plan {

enum class Algorithm : std::uint8_t {
  ring,        // in an order that suits the topology: grids' Hamiltonian cycle, else contiguous
  ring_across, // MultiTree's authors' order on switch networks: every hop crosses switches
  double_binary_tree, // NCCL's
  ring_2d,            // grids
  hdrm,               // BiGraph
  multitree,
};

std::string_view name_of(Algorithm algorithm);
std::optional<Algorithm> algorithm_named(std::string_view name);

/// Empty: the algorithm can be used there. Else why it cannot, in words.
std::string why_not(Algorithm algorithm, const Topology& topology,
                    std::span<const VertexId> participants);

/// The most nodes of a plan. Its tables grow with their square: for 4,096 they take 5 GB, for 8,192
/// 20 GB.
inline constexpr std::size_t kMostParticipants = 8192;

struct Plan {
  Algorithm algorithm{};
  std::vector<VertexId> participants; // by rank
  Forest forest;                      // multitree's; empty for the others
  Schedule schedule;
};

/// All nodes, in order of their numbers.
std::vector<VertexId> every_node(const Topology& topology);

/// `participants` are two nodes to kMostParticipants, each once. Errors: PlanError, with why_not's
/// words too.
Plan make_plan(const Topology& topology, Algorithm algorithm,
               std::span<const VertexId> participants);
Plan make_plan(const Topology& topology, Algorithm algorithm);

} // namespace weir::plan
