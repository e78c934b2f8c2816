// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Topologies, trees and rings as text for Graphviz.

#include "plan/fabric.hpp"
#include "plan/topology.hpp"
#include "plan/tree.hpp"

#include <string>

namespace weir::plan {

/// For neato where it is a grid (places are given), for dot otherwise: switches above nodes.
struct Drawing {
  std::string engine; // "neato" or "dot"
  std::string text;
};

/// Nodes and switches, cables with their rates.
Drawing draw_topology(const Topology& topology);

/// A tree, its edges with their steps of all-gather: on a grid over the cables that are there,
/// elsewhere with the root on top.
Drawing draw_tree(const Topology& topology, const Forest& forest, const Tree& tree);

/// The tree of switches of a ring, ranks at its leaves.
Drawing draw_ring(const Topology& topology, const FabricRing& ring);

} // namespace weir::plan
