// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// MultiTree's trees (ISCA'21 Algorithm 1 and §III-C3).

#include "plan/schedule.hpp"
#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::plan {

/// Child is added below parent in step `step` of all-gather, from 1.
struct TreeEdge {
  VertexId parent = kNone;
  VertexId child = kNone;
  Step step = 0;
  Slice route; // in Forest::routes, from parent to child; reduce uses the reverse links
};

/// Spans the participants.
struct Tree {
  VertexId root = kNone;
  std::vector<TreeEdge> edges; // in order of adding; every parent is the root or an earlier child
};

struct Forest {
  std::vector<Tree> trees;    // by rank of their root
  std::vector<LinkId> routes; // pool
  Step step_count = 0;        // of one phase
};

/// One tree for each of `participants` (nodes, each once, at least two). Different rates count as
/// parallel edges (plan/capacity.hpp). Nodes that are no participants pass messages on where the
/// topology lets nodes do so. Errors: PlanError when a participant cannot be reached.
Forest grow_forest(const Topology& topology, std::span<const VertexId> participants);

/// Longest way from the root, in edges.
std::uint32_t height_of(const Tree& tree);

} // namespace weir::plan
