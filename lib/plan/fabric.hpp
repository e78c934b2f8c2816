// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Rings over trees of Weir switches: which ring and which part of its tree each switch holds.
/// The ranks of a ring, in ring order, are the leaves of its tree, depth first, so every switch
/// covers a contiguous range of ranks. Rings share host links and, as far as the topology allows,
/// no link between switches.

#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::plan {

/// A rank's node or another switch, below a switch.
struct FabricChild {
  VertexId vertex = kNone;
  LinkId down = kNone; // from the switch to it; the way up is its reverse
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

/// At most `most_rings` rings over `participants`, fewer where the trees would share a link between
/// switches; one at least. Trees are as shallow as can be; where more trees have room by being
/// deeper, there are more. That is the most where all switches have participants, or where all of a
/// tree's branches end at its root. Errors: PlanError where a participant is on no switch, or where
/// no tree of switches reaches all.
FabricPlan plan_fabric(const Topology& topology, std::span<const VertexId> participants,
                       std::uint32_t most_rings);

} // namespace weir::plan
