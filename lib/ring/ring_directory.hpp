// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_spec.hpp"
#include "wire/address.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weir::ring {

/// A rank of a ring, by the ring's index in the directory.
struct RingRank {
  std::uint16_t ring = 0;
  std::uint16_t rank = 0;
};

/// Which addresses are ring neighbours. Built once from the configuration, then read by every lcore
/// and written by none.
class RingDirectory {
 public:
  /// Throws std::invalid_argument when two rings have the same id, bind one address to two ports,
  /// or have more than kMostMembers in all.
  explicit RingDirectory(std::vector<RingSpec> rings);

  static constexpr std::size_t kMostMembers = 32767;

  std::span<const RingSpec> rings() const { return rings_; }

  std::optional<std::uint16_t> ring_with_id(std::uint32_t id) const;

  /// A number of 1 .. pairs() for <a member, its successor> or <a member, its predecessor> in any
  /// ring; 0 for any other two addresses.
  std::uint16_t pair_of(const wire::IpAddress& source, const wire::IpAddress& destination) const;

  std::size_t pairs() const { return pairs_.size(); }

  /// The ranks that send their contributions from the pair's source to its destination; none where
  /// only acknowledgements flow.
  std::span<const RingRank> senders(std::uint16_t pair) const { return pairs_[pair - 1u].senders; }

  /// The pair with source and destination exchanged.
  std::uint16_t reverse_of(std::uint16_t pair) const { return pairs_[pair - 1u].reverse; }

  /// False when the configuration binds the pair's source to another port.
  bool may_enter(std::uint16_t pair, std::uint16_t ingress) const {
    const std::optional<std::uint16_t>& port = pairs_[pair - 1u].source_port;
    return !port || *port == ingress;
  }

  /// The pair of this rank and its successor.
  std::uint16_t pair_of(const RingRank& sender) const {
    return sender_pairs_[sender.ring][sender.rank];
  }

  /// Rings that share two neighbours, in either direction, must share a worker, since a packet
  /// names its addresses but only some name their ring. Each such group has a number; groups are
  /// independent of one another.
  std::uint16_t group_of_pair(std::uint16_t pair) const { return pairs_[pair - 1u].group; }

  std::uint16_t group_of_ring(std::uint16_t ring) const { return ring_groups_[ring]; }

 private:
  struct Pair {
    wire::IpAddress source;
    wire::IpAddress destination;
    std::uint16_t group = 0;
    std::uint16_t reverse = 0;
    std::optional<std::uint16_t> source_port;
    std::vector<RingRank> senders;
  };

  /// Where the pair is, or where it would go.
  std::size_t find_cell(const wire::IpAddress& source, const wire::IpAddress& destination) const;
  void add_neighbours(std::uint16_t ring);
  std::uint16_t add_pair(std::uint16_t ring, const Member& source, const Member& destination);
  void check_ports() const;
  void merge_groups(std::uint16_t keep, std::uint16_t give_up);

  std::vector<RingSpec> rings_;
  std::unordered_map<std::uint32_t, std::uint16_t> ring_by_id_;
  std::vector<std::uint16_t> ring_groups_;
  std::vector<std::vector<std::uint16_t>> sender_pairs_; // by ring and rank
  std::vector<Pair> pairs_;
  std::vector<std::uint16_t> cells_; // open addressing, power of two; pair number or 0
};

} // namespace weir::ring
