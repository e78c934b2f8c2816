// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Rings over trees of Weir switches: which rings each switch has, and its part of each ring's
/// tree. A ring's ranks are the leaves of its tree, in ring order, depth first. So every switch
/// covers a contiguous range of ranks. Rings share host links and, as far as the topology allows,
/// no link between switches.

#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::plan {

/// A child of a switch: a rank's node or another switch.
struct FabricChild {
  VertexId vertex = kNone;
  LinkId down = kNone; // from the switch to the child; its reverse is the way up
  std::uint32_t first_rank = 0;
  std::uint32_t rank_count = 0;
};

struct FabricSwitch {
  VertexId vertex = kNone;
  VertexId parent = kNone; // kNone: the root
  LinkId up = kNone;       // to the parent
  std::uint32_t first_rank = 0;
  std::uint32_t rank_count = 0;
  std::vector<FabricChild> children; // in ring order
};

struct FabricRing {
  std::vector<VertexId> members;      // by rank
  std::vector<FabricSwitch> switches; // depth first, the root first
};

struct FabricPlan {
  std::vector<FabricRing> rings; // each carries an equal share of the tensor
};

/// At most `most_rings` rings over `participants`, at least one. There are fewer when the trees
/// would share a link between switches. Trees are as shallow as possible, but deeper where that
/// makes room for more trees. The number is the largest possible where all switches have
/// participants, or where all branches of a tree end at its root. Errors: PlanError when a
/// participant is on no switch, or when no tree of switches reaches all.
FabricPlan plan_fabric(const Topology& topology, std::span<const VertexId> participants,
                       std::uint32_t most_rings);

} // namespace weir::plan
