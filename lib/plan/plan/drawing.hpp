// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Topologies, trees and rings as text for Graphviz.

#include "plan/fabric.hpp"
#include "plan/topology.hpp"
#include "plan/tree.hpp"

#include <string>

namespace weir::plan {

/// A grid is for neato and has positions. All else is for dot, with switches above nodes.
struct Drawing {
  std::string engine; // "neato" or "dot"
  std::string text;
};

/// Nodes and switches, cables with their rates.
Drawing draw_topology(const Topology& topology);

/// A tree; each edge has its step of all-gather. On a grid it is drawn over the cables, elsewhere
/// with the root on top.
Drawing draw_tree(const Topology& topology, const Forest& forest, const Tree& tree);

/// A ring's tree of switches, with the ranks as leaves.
Drawing draw_ring(const Topology& topology, const FabricRing& ring);

} // namespace weir::plan
