// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::plan {

/// Undirected; vertices by number from 0. Equal edges are parallel ones.
struct Edge {
  std::uint32_t one = 0;
  std::uint32_t other = 0;
};

/// As many spanning trees without a common edge as exist, up to `most`; each as indices into
/// `edges`. There are k trees exactly when, for every partition of the vertices into p parts, at
/// least k(p-1) edges cross it (Nash-Williams, J. London Math. Soc. 36, 1961). They are found by
/// exchanging edges between forests along a shortest chain (Edmonds' matroid partition, 1965). None
/// for fewer than two vertices.
std::vector<std::vector<std::uint32_t>>
disjoint_spanning_trees(std::uint32_t vertices, std::span<const Edge> edges, std::uint32_t most);

} // namespace weir::plan
