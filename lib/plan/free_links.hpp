// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What is left of a topology within a step of MultiTree (ISCA'21 §III-C3), and the search for the
/// nearest node that a tree lacks.

#include "plan/bits.hpp"
#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::plan {

/// Sets of participants are Bits by place(): those that hang on one switch stand together, in the
/// order in which the switch tries them.
class FreeLinks {
 public:
  FreeLinks(const Topology& topology, std::span<const VertexId> participants);

  /// A new step: every link is free.
  void restore();

  std::uint32_t place(VertexId participant) const { return place_[participant]; }

  /// May find a child for a tree that has `has`. False is certain.
  bool may_grow(const Bits& has) const { return senders_.meets(has) && !receivers_.within(has); }

  bool can_send(VertexId node) const { return free_out_[node] != 0; }

  /// The participant nearest to `parent`, breadth first through what passes messages on, that is
  /// not in `has`; kNone where no free way leads to any. A switch with participants of its own is
  /// passed from them, or to them, but not across: what lies behind it is one more edge of the tree
  /// away (as the authors' program does; a BiGraph's trees take N-1 steps so, and half as many
  /// again otherwise).
  VertexId find_child(VertexId parent, const Bits& has);

  /// Takes a unit from every link on the way that find_child just found, and appends them to
  /// `routes`.
  void take_way(VertexId parent, VertexId child, std::vector<LinkId>& routes);

  /// `parent` never finds a child again once all its neighbours are in the tree; not so where a
  /// neighbour passes messages on.
  bool is_spent(VertexId parent, const Bits& has) const;

  /// The switch on which all depends for `parent`: what it cannot find, nobody else there can in
  /// this step. kNone: it has several links.
  VertexId gate_of(VertexId parent) const { return gate_[parent]; }

 private:
  /// Links of a vertex by what they lead to.
  struct Exits {
    std::uint32_t first_place = 0; // of the participants that hang here
    std::uint32_t end_place = 0;
    std::vector<LinkId> to_others; // participants that have their place elsewhere
    std::vector<LinkId> onwards;   // to what passes messages on
  };

  void give_places();
  void sort_exits();

  bool is_participant(VertexId vertex) const { return place_[vertex] != kNone; }

  /// A child right behind `at`.
  VertexId child_at(VertexId at, const Bits& has);
  void use(LinkId link);

  const Topology& topology_;
  std::vector<std::uint32_t> place_; // by vertex; kNone: takes no part
  std::vector<VertexId> at_place_;
  std::vector<LinkId> down_link_;       // by place: from the switch it hangs on; kNone: on none
  std::vector<VertexId> gate_;          // by vertex
  std::vector<Exits> exits_;            // by vertex
  std::vector<bool> serves_;            // by vertex: a participant has a link to it
  std::vector<std::uint32_t> capacity_; // by link

  // Of this step.
  std::vector<std::uint32_t> free_;     // by link
  std::vector<std::uint32_t> free_out_; // by vertex: units of all links that leave it
  std::vector<std::uint32_t> free_in_;  // … and that enter it
  Bits all_;
  Bits senders_;   // participants with a unit to send by
  Bits receivers_; // … to receive by
  Bits open_down_; // participants whose down link is free

  // Of the search under way.
  std::vector<VertexId> open_;
  std::vector<LinkId> came_by_;
  std::vector<std::uint64_t> seen_at_; // the number of the search that last saw a vertex
  std::uint64_t search_ = 0;
  std::uint32_t offset_ = 0; // of the parent among the participants of its switch
};

} // namespace weir::plan
