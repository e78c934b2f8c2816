// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Bytes of an all-reduce on the links of a two-level tree (leaves with hosts, one spine per
/// block), summed over all links in both directions, without headers.

#include <cstdint>
#include <vector>

namespace weir::figures {

struct TwoLevels {
  std::uint32_t leaves = 0;
  std::uint32_t hosts_per_leaf = 0;

  std::uint32_t hosts() const { return leaves * hosts_per_leaf; }
};

/// Links between two hosts: 2 below one leaf, 4 through a spine.
std::uint32_t links_between(const TwoLevels& tree, std::uint32_t from, std::uint32_t to);

/// Each host's tensor goes up, each leaf's sum goes up, one result goes down to all.
double through_switches(const TwoLevels& tree, double bytes);

/// Reduce-scatter and all-gather by hosts in the order of their leaves.
double host_ring(const TwoLevels& tree, double bytes);

/// SparCML: every host sends to each other host the pairs of that host's share of the indices. Then
/// the sums are sent, dense, by recursive doubling.
double split_and_gather(const TwoLevels& tree, double pair_bytes, double dense_bytes);

/// Index sets that switches unite on the way up: at the leaves, then at the spine.
struct Unions {
  double host = 0; ///< indices of a host, on average
  double leaf = 0; ///< of all hosts of a leaf together, on average
  double all = 0;  ///< of all hosts together
};

/// `sets[h]` are host h's indices, any number of times each.
Unions unions_of(const TwoLevels& tree, const std::vector<std::vector<std::uint32_t>>& sets);

/// Flare: pairs go up and are united at each leaf; all of them go down to every host.
double sparse_through_switches(const TwoLevels& tree, const Unions& unions, double pair_bytes);

} // namespace weir::figures
