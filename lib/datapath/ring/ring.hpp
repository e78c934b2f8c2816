// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_spec.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::ring {

/// Consecutive ranks of a ring.
struct RankRange {
  std::uint16_t first = 0;
  std::uint16_t count = 1;

  std::uint16_t last() const { return static_cast<std::uint16_t>(first + count - 1u); }
};

/// A switch reduces the contributions of its children. A child is a rank, or a switch that answers
/// for several ranks. A child sends on one connection, from its last rank to the rank after that.
struct Child {
  RankRange ranks;
  std::optional<std::uint16_t> port; // the one port its packets may come from; absent: any
};

/// The switch that receives this switch's partial results. Its final results arrive on one
/// connection, from the rank before this switch's first one to that first one.
struct Parent {
  std::optional<std::uint16_t> port; // as a child's
};

/// A ring as one switch sees it: its children, and its parent if it has one. Children are numbered
/// from 0 in ring order.
class Ring {
 public:
  /// Every rank is a child of this switch, and there is no parent.
  explicit Ring(const RingSpec& spec);

  /// Throws std::invalid_argument if the children's ranks are not consecutive or do not fit the
  /// world, or if there is no parent and ranks are missing.
  Ring(RingSpec spec, std::vector<Child> children, std::optional<Parent> parent);

  const RingSpec& spec() const { return spec_; }

  std::uint16_t children() const { return static_cast<std::uint16_t>(children_.size()); }

  const Child& child(std::uint16_t number) const { return children_[number]; }

  const std::optional<Parent>& parent() const { return parent_; }

  /// The child that answers for the rank; nullopt if another switch's child does. `rank` is below
  /// the world.
  std::optional<std::uint16_t> child_of_rank(std::uint16_t rank) const {
    const std::uint16_t number = child_of_rank_[rank];
    return number < children_.size() ? std::optional(number) : std::nullopt;
  }

  /// The rank that this child's packets come from.
  std::uint16_t sender_of(std::uint16_t child) const { return children_[child].ranks.last(); }

  /// The source address of the child's connection.
  const wire::IpAddress& source_of(std::uint16_t child) const {
    return spec_.members[sender_of(child)].ip;
  }

  /// The destination address of the child's connection.
  const wire::IpAddress& destination_of(std::uint16_t child) const {
    return spec_.members[spec_.successor(sender_of(child))].ip;
  }

  /// The child that receives on this child's connection; nullopt if the parent does.
  std::optional<std::uint16_t> receiver_of(std::uint16_t child) const {
    const auto next = static_cast<std::uint16_t>(child + 1u);
    if (next < children_.size()) {
      return next;
    }
    return parent_ ? std::nullopt : std::optional<std::uint16_t>(0);
  }

 private:
  RingSpec spec_;
  std::vector<Child> children_;
  std::optional<Parent> parent_;
  std::vector<std::uint16_t> child_of_rank_; // children() for ranks of other switches
};

} // namespace weir::ring
