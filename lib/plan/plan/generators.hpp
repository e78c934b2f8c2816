// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Topologies by formula. Nodes are n0, n1, …; each function tells its switches' names. Errors:
/// PlanError for dimensions out of range, or more than kMostVertices nodes and switches.

#include "plan/topology.hpp"

#include <cstdint>

namespace weir::plan {

inline constexpr std::uint32_t kMostVertices = 1U << 16;
inline constexpr std::uint32_t kMostLinks = 1U << 22;

/// rows, columns ≥ 2. A torus with a dimension of 2 has two parallel links there.
Topology make_torus(std::uint32_t rows, std::uint32_t columns, LinkTraits link);
Topology make_mesh(std::uint32_t rows, std::uint32_t columns, LinkTraits link);

/// Two levels: node i is on leaf i / nodes_per_leaf, and every leaf has one link to every spine.
/// Switches are leaf0 …, then spine0 …
struct LeafSpine {
  std::uint32_t leaves = 0;
  std::uint32_t nodes_per_leaf = 0;
  std::uint32_t spines = 0;
  LinkTraits host;
  LinkTraits uplink;
};

Topology make_spine_leaf(const LeafSpine& shape);

/// A spine-leaf with as many links up as down (MultiTree §V: 8 leaves, 8 nodes per leaf, 8 spines).
/// Unicast takes the spine of the source's number.
Topology make_fat_tree(std::uint32_t leaves, std::uint32_t nodes_per_leaf, LinkTraits link);

/// MultiTree §V, EFLOPS: BiGraph of `nodes_per_switch` x `switches`, an even number. Switches are
/// upper0 …, lower0 …
Topology make_bigraph(std::uint32_t nodes_per_switch, std::uint32_t switches, LinkTraits host,
                      LinkTraits between);

/// MultiTree §V, "DGX-2-like": two switches of 8 nodes, 8 parallel links between them.
Topology make_dgx2(LinkTraits host, LinkTraits between);

/// One switch, named hub.
Topology make_star(std::uint32_t nodes, LinkTraits link);

} // namespace weir::plan
