// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Bytes that an all-reduce puts on the links of a two-level tree (leaves with hosts, one spine a
/// block), added up over all links in both directions; headers are not counted.

#include <cstdint>
#include <vector>

namespace weir::figures {

struct TwoLevels {
  std::uint32_t leaves = 0;
  std::uint32_t hosts_per_leaf = 0;

  std::uint32_t hosts() const { return leaves * hosts_per_leaf; }
};

/// Links between two hosts: 2 below a leaf, 4 by a spine.
std::uint32_t links_between(const TwoLevels& tree, std::uint32_t from, std::uint32_t to);

/// Each host's tensor up, each leaf's sum up, one result down to all.
double through_switches(const TwoLevels& tree, double bytes);

/// Reduce-scatter and all-gather by hosts in the order of their leaves.
double host_ring(const TwoLevels& tree, double bytes);

/// SparCML: every host sends each other host its pairs of that host's share of the indices; then
/// the sums, dense, by recursive doubling.
double split_and_gather(const TwoLevels& tree, double pair_bytes, double dense_bytes);

/// Index sets that switches unite on the way up, leaf by leaf and then at the spine.
struct Unions {
  double host = 0; ///< indices of a host, on average
  double leaf = 0; ///< of a leaf's hosts together, on average
  double all = 0;  ///< of all hosts together
};

/// `sets[h]` are host h's indices, any number of times each.
Unions unions_of(const TwoLevels& tree, const std::vector<std::vector<std::uint32_t>>& sets);

/// Flare: pairs up, leaf by leaf united, and all of them down to everyone.
double sparse_through_switches(const TwoLevels& tree, const Unions& unions, double pair_bytes);

} // namespace weir::figures
