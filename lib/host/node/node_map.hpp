// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/residence.hpp"
#include "wire/address.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::host {

/// A rank's NIC: the address counts as well, because a NIC may have several, and each may be a
/// member of a switch's ring.
struct Resident {
  Residence residence;
  wire::IpAddress ip;
};

/// Which ranks share a NIC: a node. Its lowest rank leads it, and is the one that the network sees.
/// Nodes are numbered in the order of their leaders, which is that of the switch's ring.
class NodeMap {
 public:
  NodeMap() = default;

  /// By rank. A rank whose residence is not known is a node of its own. Throws Error (mismatch)
  /// about a rank that shares a NIC with another user's.
  explicit NodeMap(std::span<const Resident> residents);

  std::uint16_t nodes() const { return static_cast<std::uint16_t>(ranks_.size()); }

  /// Whether any rank has no NIC of its own.
  bool is_shared() const { return nodes() != node_of_.size(); }

  std::uint16_t node_of(std::uint16_t rank) const { return node_of_[rank]; }

  std::uint16_t leader_of(std::uint16_t node) const { return ranks_[node].front(); }

  bool leads(std::uint16_t rank) const { return leader_of(node_of(rank)) == rank; }

  /// Of a node; they ascend.
  const std::vector<std::uint16_t>& ranks_of(std::uint16_t node) const { return ranks_[node]; }

  /// The rank's place among those of its node.
  std::uint16_t place_of(std::uint16_t rank) const;

 private:
  std::vector<std::uint16_t> node_of_;            // by rank
  std::vector<std::vector<std::uint16_t>> ranks_; // by node
};

} // namespace weir::host
