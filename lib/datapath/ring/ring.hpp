// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_spec.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::ring {

/// The way of a connection through one switch of a tree (docs/protocol.md §11).
enum class Leg : std::uint8_t {
  inner,    // from a child to the next one
  outgoing, // from the last child to the parent
  entering, // from the parent to the first child
};

/// What must be equal on all switches of the tree: the CRC-32 of id, world, N, max_message_bytes
/// and MTU as 32-bit big-endian words, and the members' addresses of 16 bytes (docs/protocol.md
/// §11.2).
std::uint32_t digest_of(const RingSpec& spec);

/// A ring as one switch sees it: its children, and its parent if it has one. Children are numbered
/// from 0 in ring order; the parent has the number behind the last child's. Each of them sends on
/// one connection, to the one with the next number, and the last one to the first.
class Ring {
 public:
  /// Throws std::invalid_argument if the children's ranks are not consecutive or do not fit the
  /// world; if a ring without a parent does not cover its world or has one child, and one with a
  /// parent covers it; if a switch, below or above, has no port of its own; or if members have
  /// ports beside children that are given.
  explicit Ring(RingSpec spec);

  const RingSpec& spec() const { return spec_; }

  std::uint16_t children() const { return static_cast<std::uint16_t>(children_.size()); }

  /// Children and parent.
  std::uint16_t senders() const { return static_cast<std::uint16_t>(children() + !is_root()); }

  const Child& child(std::uint16_t number) const { return children_[number]; }

  const std::optional<Parent>& parent() const { return spec_.parent; }

  bool is_root() const { return !spec_.parent; }

  /// Whether another switch has a part in it.
  bool is_in_tree() const { return ports_of_switches_ != 0; }

  std::uint32_t digest() const { return digest_; }

  /// The ranks that the children answer for.
  RankRange range() const {
    const std::uint16_t first = children_.front().ranks.first;
    return {first, static_cast<std::uint16_t>(children_.back().ranks.last() - first + 1u)};
  }

  /// The ports that lead to other switches: a set.
  std::uint64_t ports_of_switches() const { return ports_of_switches_; }

  /// The child that answers for the rank; nullopt if another switch's child does. `rank` is below
  /// the world.
  std::optional<std::uint16_t> child_of_rank(std::uint16_t rank) const {
    const std::uint16_t number = child_of_rank_[rank];
    return number < children_.size() ? std::optional(number) : std::nullopt;
  }

  /// The child, or the parent, that brings the packets whose header names this rank; nullopt if
  /// such packets do not pass this switch.
  std::optional<std::uint16_t> sender_for(std::uint16_t rank) const;

  bool is_parent(std::uint16_t sender) const { return sender == children_.size(); }

  bool is_rank(std::uint16_t sender) const {
    return !is_parent(sender) && children_[sender].kind == ChildKind::rank;
  }

  /// The one port its packets may come from; absent: any.
  std::optional<std::uint16_t> port_of(std::uint16_t sender) const {
    return is_parent(sender) ? spec_.parent->port : children_[sender].port;
  }

  /// The rank whose packets these are: a child's last one, or the one before this switch's first.
  std::uint16_t rank_of(std::uint16_t sender) const {
    return is_parent(sender) ? spec_.predecessor(children_.front().ranks.first)
                             : children_[sender].ranks.last();
  }

  /// The source address of the sender's connection.
  const wire::IpAddress& source_of(std::uint16_t sender) const {
    return spec_.members[rank_of(sender)].ip;
  }

  /// The destination address of the sender's connection.
  const wire::IpAddress& destination_of(std::uint16_t sender) const {
    return spec_.members[spec_.successor(rank_of(sender))].ip;
  }

  /// Who receives on this sender's connection.
  std::uint16_t receiver_of(std::uint16_t sender) const {
    return static_cast<std::uint16_t>(sender + 1u == senders() ? 0 : sender + 1);
  }

  /// Who sends on the connection that leads to this receiver.
  std::uint16_t sender_to(std::uint16_t receiver) const {
    return static_cast<std::uint16_t>((receiver == 0 ? senders() : receiver) - 1u);
  }

  Leg leg_of(std::uint16_t sender) const {
    if (is_root() || sender + 1u < children()) {
      return Leg::inner;
    }
    return is_parent(sender) ? Leg::entering : Leg::outgoing;
  }

 private:
  RingSpec spec_;
  std::vector<Child> children_;
  std::vector<std::uint16_t> child_of_rank_; // children() for ranks of other switches
  std::uint64_t ports_of_switches_ = 0;
  std::uint32_t digest_ = 0;
};

} // namespace weir::ring
