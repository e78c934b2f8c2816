// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The free links within a step of MultiTree (ISCA'21 §III-C3), and the search for the nearest node
/// that a tree lacks.

#include "plan/bits.hpp"
#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::plan {

/// Sets of participants are Bits by place(). Participants on one switch are next to each other, in
/// the order in which the switch tries them.
class FreeLinks {
 public:
  FreeLinks(const Topology& topology, std::span<const VertexId> participants);

  /// Begins a step: every link is free.
  void restore();

  std::uint32_t place(VertexId participant) const { return place_[participant]; }

  /// Whether a tree with `has` may find a child. False is certain; true is not.
  bool may_grow(const Bits& has) const { return senders_.meets(has) && !receivers_.within(has); }

  bool can_send(VertexId node) const { return free_out_[node] != 0; }

  /// The nearest participant to `parent` that is not in `has`, breadth first through vertices that
  /// pass messages on. kNone where no free way leads to one. The search enters and leaves a switch
  /// that has participants, but does not cross it: what is behind it needs one more edge of the
  /// tree. (The authors' program does the same. A BiGraph's trees then take N-1 steps, else half as
  /// many again.)
  VertexId find_child(VertexId parent, const Bits& has);

  /// Takes a unit from every link on the way that find_child() just found, and appends the links to
  /// `routes`.
  void take_way(VertexId parent, VertexId child, std::vector<LinkId>& routes);

  /// True when `parent` will never find a child again: all its neighbours are in the tree and none
  /// passes messages on.
  bool is_spent(VertexId parent, const Bits& has) const;

  /// Whether is_spent() is ever true of a participant. In a network of switches it is of none.
  bool may_be_spent() const { return may_be_spent_; }

  /// The only switch of `parent`. If `parent` finds no child, no other participant there will in
  /// this step. kNone: it has several links.
  VertexId gate_of(VertexId parent) const { return gate_[parent]; }

 private:
  /// Links of a vertex, by what is at their other end.
  struct Exits {
    std::uint32_t first_place = 0; // of the participants on this switch
    std::uint32_t end_place = 0;
    std::vector<LinkId> to_others; // participants whose place is elsewhere
    std::vector<LinkId> onwards;   // to vertices that pass messages on
  };

  void give_places();
  void sort_exits();

  bool is_participant(VertexId vertex) const { return place_[vertex] != kNone; }

  /// A child next to `at`.
  VertexId child_at(VertexId at, const Bits& has);
  void use(LinkId link);

  const Topology& topology_;
  std::vector<std::uint32_t> place_; // by vertex; kNone: no participant
  std::vector<VertexId> at_place_;
  std::vector<LinkId> down_link_;       // by place: from its switch; kNone: it is on none
  std::vector<VertexId> gate_;          // by vertex
  std::vector<Exits> exits_;            // by vertex
  std::vector<bool> serves_;            // by vertex: a participant has a link to it
  std::vector<std::uint32_t> capacity_; // by link
  bool may_be_spent_ = false;

  // State of this step.
  std::vector<std::uint32_t> free_;     // by link
  std::vector<std::uint32_t> free_out_; // by vertex: units of all links that leave it
  std::vector<std::uint32_t> free_in_;  // … and that enter it
  Bits all_;
  Bits senders_;   // participants with a free unit to send
  Bits receivers_; // … to receive by
  Bits open_down_; // participants whose down link is free

  // State of the present search.
  std::vector<VertexId> open_;
  std::vector<LinkId> came_by_;
  std::vector<std::uint64_t> seen_at_; // the number of the search that last saw a vertex
  std::uint64_t search_ = 0;
  std::uint32_t offset_ = 0; // of the parent, among the participants of its switch
};

} // namespace weir::plan
