// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/ring_spec.hpp"
#include "wire/address.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weir::conn {

/// Which addresses are ring neighbours. Built once from the configuration, then read by every lcore
/// and written by none.
class RingDirectory {
 public:
  /// Throws std::invalid_argument when there are more than 65535 pairs of neighbours.
  explicit RingDirectory(std::vector<RingSpec> rings);

  std::span<const RingSpec> rings() const { return rings_; }

  std::optional<std::uint16_t> ring_with_id(std::uint32_t id) const;

  /// A number of 1 .. pairs() for <a member, its successor> in any ring; 0 for any other two
  /// addresses.
  std::uint16_t pair_of(const wire::IpAddress& source, const wire::IpAddress& destination) const;

  std::size_t pairs() const { return pairs_.size(); }

  /// Rings that share a pair must share a worker, since a packet names its pair but only some name
  /// their ring. Each such group has a number; groups are independent of one another.
  std::uint16_t group_of_pair(std::uint16_t pair) const { return pairs_[pair - 1u].group; }

  std::uint16_t group_of_ring(std::uint16_t ring) const { return ring_groups_[ring]; }

 private:
  struct Pair {
    wire::IpAddress source;
    wire::IpAddress destination;
    std::uint16_t group = 0;
  };

  /// Where the pair is, or where it would go.
  std::size_t find_cell(const wire::IpAddress& source, const wire::IpAddress& destination) const;
  void add_neighbours(std::uint16_t ring);
  void merge_groups(std::uint16_t keep, std::uint16_t give_up);

  std::vector<RingSpec> rings_;
  std::unordered_map<std::uint32_t, std::uint16_t> ring_by_id_;
  std::vector<std::uint16_t> ring_groups_;
  std::vector<Pair> pairs_;
  std::vector<std::uint16_t> cells_; // open addressing, power of two; pair number or 0
};

} // namespace weir::conn
