// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Trees of switches for a group of hosts on a fabric that others use too. The same state and
/// request give the same answer. No clock, no I/O.

#include "placement/index.hpp"
#include "plan/fabric.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace weir::placement {

/// What a switch has left for rings, or what a ring takes of it.
struct Room {
  std::uint64_t rings = 0;
  std::uint64_t members = 0; // children, and one for a parent
  std::uint64_t frames = 0;  // that slots can hold
};

/// What is in use of a fabric, and what is out of use.
struct Usage {
  explicit Usage(const Index& index);

  std::vector<double> load;       // bits a second that rings and others send, by cable
  std::vector<double> reserved;   // of these, what is promised, by cable
  std::vector<std::uint8_t> shut; // not 0: no new tree by this cable
  std::vector<Room> room;         // by switch
  std::vector<std::uint8_t> out;  // not 0: no new tree over this switch
};

/// Where a rank is: a switch, and its cable to the rank's host.
struct Seat {
  SwitchIndex at = 0;
  LinkId down = kNone;
};

enum class Order : std::uint8_t {
  any,   // pod by pod, leaf by leaf
  given, // the ranks' own
};

struct Request {
  std::vector<Seat> seats; // by rank
  std::uint32_t trees = 1; // at most, which share no link between switches
  std::uint32_t least = 1; // at least
  double rate = 0;         // bits a second of all trees together
  bool is_reserved = false;
  Order order = Order::any;
  std::uint64_t frames_per_child = 0;
};

/// A rank on a switch of the tree, or a switch below.
struct TreeChild {
  bool is_rank() const { return below == kNone; }

  SwitchIndex below = kNone; // kNone: a rank
  LinkId down = kNone;
  std::uint32_t first = 0; // position in the ring
  std::uint32_t count = 0;
};

struct TreeSwitch {
  SwitchIndex at = 0;
  SwitchIndex parent = kNone; // kNone: the root
  LinkId up = kNone;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::vector<TreeChild> children; // in ring order
};

struct Tree {
  std::vector<TreeSwitch> switches; // depth first, the root first
  double rate = 0;                  // bits a second on each of its links
};

struct Placement {
  std::vector<std::uint32_t> position; // in the rings, by rank
  std::vector<std::uint32_t> rank_at;  // by position
  std::vector<Tree> trees;
  double busiest = 0;                // the busiest link's load over its rate, with these trees
  std::uint32_t roots_looked_at = 0; // for the first tree
};

enum class Lack : std::uint8_t { tree, order, rings, members, frames, bandwidth };

/// Why there is no placement.
struct Refusal {
  Lack lack = Lack::tree;
  SwitchIndex where = kNone; // the switch that is short, or behind which `rank` is cut off
  std::uint32_t rank = 0;    // of tree and order
  std::uint64_t needs = 0;
  std::uint64_t free = 0;
};

using Answer = std::variant<Placement, Refusal>;

struct Branch; // tree_layout.hpp

/// Keeps what it needs between two calls. One thread at a time.
class Placer {
 public:
  /// `index` outlives it.
  explicit Placer(const Index& index);

  Answer place(const Request& request, const Usage& usage);

 private:
  struct Candidate {
    SwitchIndex root = kNone;
    double busiest = 0;
    double sum = 0;
  };

  /// From a switch of the tree to its parent.
  struct Step {
    const Way* way = nullptr; // none leads nearer to the root
    double load = 0;          // over the link's rate, with this tree
    bool is_new = false;      // the tree gets the parent by it
  };

  struct Search; // of one call

  void gather_leaves(const Request& request);
  std::vector<SwitchIndex> candidates(const Usage& usage, std::uint8_t depth);
  Step best_step(SwitchIndex at, SwitchIndex root, Search& search) const;
  void enter(SwitchIndex at, SwitchIndex root);
  bool climb(SwitchIndex root, Search& search, double bound, Candidate& found);
  bool has_room(const Search& search, SwitchIndex root, Refusal& refusal) const;
  Candidate best_root(Search& search);
  std::vector<Branch> branches(SwitchIndex root) const;
  void build(SwitchIndex root, Search& search);
  Refusal why_none(const Search& search) const;

  const Index& index_;
  std::vector<SwitchIndex> leaves_;               // of the request, by lowest rank
  std::vector<std::vector<std::uint32_t>> ranks_; // by switch; only those of leaves_ have some
  // Of the tree that is tried: by switch.
  std::vector<std::uint64_t> stamp_;
  std::vector<LinkId> up_;
  std::vector<SwitchIndex> parent_;
  std::vector<std::uint32_t> children_;
  std::vector<std::vector<SwitchIndex>> at_distance_;
  std::uint64_t now_ = 0;
};

/// Adds what the placement takes to the usage, or takes it out again.
void take(const Placement& placement, const Request& request, Usage& usage);
void give_back(const Placement& placement, const Request& request, Usage& usage);

/// What a tree's switch takes.
Room room_of(const TreeSwitch& part, std::uint64_t frames_per_child);

/// "[0,1,[2,3]]", who adds up whom, by position.
std::string shape_of(const Tree& tree);

} // namespace weir::placement
