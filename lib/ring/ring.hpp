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

/// Whose contributions a switch adds up: a rank, or a switch that answers for several ranks. A
/// child sends on one connection, from its last rank to the rank after that.
struct Child {
  RankRange ranks;
  std::optional<std::uint16_t> port; // the one port its packets may come from; absent: any
};

/// The switch that gets this switch's partial sums. Its totals come on one connection, from the
/// rank before this switch's first one to that first one.
struct Parent {
  std::optional<std::uint16_t> port; // as a child's
};

/// A ring as one switch holds it: who its children are, and whether it has a parent. Children have
/// numbers, 0 .. H - 1 at most, in ring order.
class Ring {
 public:
  /// Every rank is a child of this switch, and there is no parent.
  explicit Ring(RingSpec spec);

  /// Throws std::invalid_argument when the children's ranks are not consecutive, do not fit the
  /// world, or, without a parent, are not all of it.
  Ring(RingSpec spec, std::vector<Child> children, std::optional<Parent> parent);

  const RingSpec& spec() const { return spec_; }

  std::uint16_t children() const { return static_cast<std::uint16_t>(children_.size()); }

  const Child& child(std::uint16_t number) const { return children_[number]; }

  const std::optional<Parent>& parent() const { return parent_; }

  /// The child that answers for the rank; nullopt where another switch's child does. `rank` is
  /// below the world.
  std::optional<std::uint16_t> child_of_rank(std::uint16_t rank) const {
    const std::uint16_t number = child_of_rank_[rank];
    return number < children_.size() ? std::optional(number) : std::nullopt;
  }

  /// The rank that this child's packets come from.
  std::uint16_t sender_of(std::uint16_t child) const { return children_[child].ranks.last(); }

  /// Of the child's connection.
  const wire::IpAddress& source_of(std::uint16_t child) const {
    return spec_.members[sender_of(child)].ip;
  }

  /// Likewise.
  const wire::IpAddress& destination_of(std::uint16_t child) const {
    return spec_.members[spec_.successor(sender_of(child))].ip;
  }

  /// The child that this child's connection leads to; nullopt: it leads to the parent.
  std::optional<std::uint16_t> receiver_of(std::uint16_t child) const {
    const auto next = static_cast<std::uint16_t>(child + 1u);
    if (next < children_.size()) {
      return next;
    }
    return parent_ ? std::nullopt : std::optional<std::uint16_t>(0);
  }

  /// Whether every child is a single rank, and all of them are here.
  bool is_flat() const { return children_.size() == spec_.members.size(); }

 private:
  RingSpec spec_;
  std::vector<Child> children_;
  std::optional<Parent> parent_;
  std::vector<std::uint16_t> child_of_rank_; // children(): none
};

} // namespace weir::ring
