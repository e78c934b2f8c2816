// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// One function for each algorithm: from participants, by rank, to tables. make_plan() has checked
/// that the algorithm fits.

#include "plan/schedule.hpp"
#include "plan/topology.hpp"
#include "plan/tree.hpp"

#include <span>
#include <vector>

namespace weir::plan {

/// N-1 steps of reduce-scatter and N-1 of all-gather, D/N each. `order` is the cycle.
Schedule ring_schedule(const Topology& topology, std::span<const VertexId> order);

/// A cycle of neighbours. On whole grids: a Hamiltonian cycle where there is one (row 0 to the
/// right, then down and up through the other rows from the last column). Elsewhere: depth first, so
/// that the nodes of a switch are next to each other.
std::vector<VertexId> neighbourly_order(const Topology& topology,
                                        std::span<const VertexId> participants);

/// The order of MultiTree's authors on switch networks: one node of each switch in turn. On a
/// BiGraph it uses every link between switches once per round.
std::vector<VertexId> crossing_order(const Topology& topology,
                                     std::span<const VertexId> participants);

/// NCCL 2.4's two trees (Sanders, Speck, Träff: Two-tree algorithms, 2009), each for half of the
/// data in N/2 blocks: block i passes the edges of stage s in step 2i+s. Edges have two colours
/// such that no node sends or receives in both trees in one step (with an odd number of nodes, all
/// but one). Broadcast begins when the reduction has ended.
Schedule double_binary_tree_schedule(const Topology& topology,
                                     std::span<const VertexId> participants);

/// Ying et al. 2018 as in MultiTree §V: half of the data is all-reduced along rows while the other
/// half is along columns; then the halves change places. Each half goes round in both directions.
Schedule ring_2d_schedule(const Topology& topology);

/// EFLOPS (HPCA'20): recursive halving, then doubling. Ranks are placed so that partners are on
/// opposite sides of the BiGraph.
Schedule hdrm_schedule(const Topology& topology);
/// Rank → node.
std::vector<VertexId> hdrm_placement(const BiGraph& shape);

/// Reduce-scatter up the trees, all-gather down them (Algorithm 1, lines 15 to 18), with nops.
Schedule multitree_schedule(const Topology& topology, const Forest& forest);

} // namespace weir::plan
