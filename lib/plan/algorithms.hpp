// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Plans by algorithm. A simulator needs only a plan's schedule.

#include "plan/schedule.hpp"
#include "plan/topology.hpp"
#include "plan/tree.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::plan {

enum class Algorithm : std::uint8_t {
  ring,        // in an order that suits the topology: a grid's Hamiltonian cycle, else contiguous
  ring_across, // MultiTree's authors' order on switch networks: every hop crosses switches
  double_binary_tree, // NCCL's
  ring_2d,            // grids
  hdrm,               // BiGraph
  multitree,
};

std::string_view name_of(Algorithm algorithm);
std::optional<Algorithm> algorithm_named(std::string_view name);

/// Why the algorithm cannot be used there, in words. Empty when it can.
std::string why_not(Algorithm algorithm, const Topology& topology,
                    std::span<const VertexId> participants);

struct Plan {
  Algorithm algorithm{};
  std::vector<VertexId> participants; // by rank
  Forest forest;                      // multitree's; empty for the others
  Schedule schedule;
};

/// All nodes, by number.
std::vector<VertexId> every_node(const Topology& topology);

/// `participants` are at least two nodes, each once. Errors: PlanError, also with the text of
/// why_not.
Plan make_plan(const Topology& topology, Algorithm algorithm,
               std::span<const VertexId> participants);
Plan make_plan(const Topology& topology, Algorithm algorithm);

} // namespace weir::plan
