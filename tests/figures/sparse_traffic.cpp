// SPDX-License-Identifier: BSD-3-Clause
#include "sparse_traffic.hpp"

#include <algorithm>

namespace weir::figures {
namespace {

std::size_t different(std::vector<std::uint32_t>& indices) {
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices.size();
}

} // namespace

std::uint32_t links_between(const TwoLevels& tree, std::uint32_t from, std::uint32_t to) {
  return from / tree.hosts_per_leaf == to / tree.hosts_per_leaf ? 2 : 4;
}

double through_switches(const TwoLevels& tree, double bytes) {
  return 2.0 * (tree.hosts() + tree.leaves) * bytes;
}

double host_ring(const TwoLevels& tree, double bytes) {
  const std::uint32_t hosts = tree.hosts();
  double crossings = 0;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    crossings += links_between(tree, host, (host + 1) % hosts);
  }
  return 2.0 * (hosts - 1) / hosts * bytes * crossings;
}

double split_and_gather(const TwoLevels& tree, double pair_bytes, double dense_bytes) {
  const std::uint32_t hosts = tree.hosts();
  double sum = 0;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    for (std::uint32_t other = 0; other < hosts; ++other) {
      sum += host == other ? 0 : links_between(tree, host, other) * pair_bytes / hosts;
    }
    for (std::uint32_t distance = 1; distance < hosts; distance *= 2) {
      sum += links_between(tree, host, host ^ distance) * distance * dense_bytes / hosts;
    }
  }
  return sum;
}

Unions unions_of(const TwoLevels& tree, const std::vector<std::vector<std::uint32_t>>& sets) {
  Unions unions;
  std::vector<std::uint32_t> everything;
  for (std::uint32_t leaf = 0; leaf < tree.leaves; ++leaf) {
    std::vector<std::uint32_t> below;
    for (std::uint32_t host = 0; host < tree.hosts_per_leaf; ++host) {
      std::vector<std::uint32_t> own = sets.at(std::size_t{leaf} * tree.hosts_per_leaf + host);
      below.insert(below.end(), own.begin(), own.end());
      unions.host += static_cast<double>(different(own)) / tree.hosts();
    }
    unions.leaf += static_cast<double>(different(below)) / tree.leaves;
    everything.insert(everything.end(), below.begin(), below.end());
  }
  unions.all = static_cast<double>(different(everything));
  return unions;
}

double sparse_through_switches(const TwoLevels& tree, const Unions& unions, double pair_bytes) {
  const double up = tree.hosts() * unions.host + tree.leaves * unions.leaf;
  const double down = (tree.hosts() + tree.leaves) * unions.all;
  return (up + down) * pair_bytes;
}

} // namespace weir::figures
