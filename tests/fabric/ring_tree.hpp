// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "network/dice.hpp"
#include "ring/ring_spec.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::fabric {

using network::Dice;

/// The switches of a run and the places of the hosts. With several switches they are a tree, whose
/// top is switch 0.
struct Layout {
  std::vector<std::uint16_t> above; // by switch; of switch 0: 0
  std::vector<std::uint16_t> homes; // by host: its switch

  std::uint16_t nodes() const { return static_cast<std::uint16_t>(above.size()); }

  /// Links between switches on the longest way.
  std::uint16_t diameter() const;

  static Layout star(std::uint16_t hosts);
  static Layout draw(Dice& dice);
};

/// A ring's tree: which switch adds up whose packets (docs/protocol.md §11). Reckoned here, without
/// ring::Ring.
struct RingTree {
  struct Child {
    ring::RankRange ranks;
    std::optional<std::uint16_t> node; // the switch below; absent: the child is a rank
  };

  /// A switch's part in it.
  struct Part {
    std::vector<Child> children; // empty: none
    std::optional<std::uint16_t> parent;

    bool exists() const { return !children.empty(); }

    ring::RankRange range() const;

    std::uint16_t last() const { return range().last(); }

    /// The number of the child, or of the parent, that brings the packets of this rank's
    /// connection.
    std::optional<std::uint16_t> sender_for(std::uint16_t rank, std::uint16_t world) const;

    bool is_parent(std::uint16_t sender) const { return sender == children.size(); }

    /// Of the child that sends to the parent.
    bool is_outgoing(std::uint16_t sender) const {
      return parent && sender + 1u == children.size();
    }
  };

  std::uint16_t root = 0;
  std::vector<Part> parts; // by switch

  bool has_several_switches() const;

  /// The switches on the way of the rank's connection, from the rank on.
  std::vector<std::uint16_t> way_of(std::uint16_t rank, std::uint16_t world) const;

  static RingTree star(std::uint16_t ranks);

  /// A tree over the switches that lead to these hosts. Puts the hosts into the order of the ranks.
  static RingTree draw(Dice& dice, const Layout& layout, std::vector<std::uint16_t>& hosts);
};

} // namespace weir::fabric
