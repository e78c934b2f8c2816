// SPDX-License-Identifier: BSD-3-Clause
#include "placement/place.hpp"

#include "placement/tree_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

namespace weir::placement {
namespace {

constexpr std::size_t kMostRoots = 256;
constexpr double kMostReserved = 0.9;       // of a link's rate
constexpr std::uint32_t kLeastChildren = 2; // of a root
constexpr std::uint8_t kDeepest = 15;

/// The first tree decides on the order of the ranks in the rings.
void settle(Placement& made, std::vector<std::uint32_t> rank_at) {
  made.position.resize(rank_at.size());
  for (std::uint32_t position = 0; position < rank_at.size(); ++position) {
    made.position[rank_at[position]] = position;
  }
  made.rank_at = std::move(rank_at);
}

} // namespace

Usage::Usage(const Index& index)
    : load(index.cables()), reserved(index.cables()), shut(index.cables()), room(index.switches()),
      out(index.switches()) {}

/// One call of place().
struct Placer::Search {
  /// What is short is told of the first root that lacked something.
  void note(const Refusal& lack) {
    if (!has_met_lack) {
      refusal = lack;
      has_met_lack = true;
    }
  }

  const Request& request;
  const Usage& usage;
  double share = 0;                // bits a second of one tree
  std::vector<std::uint8_t> used;  // cables of the trees so far
  std::vector<Room> room;          // what the trees so far leave
  std::vector<SwitchIndex> barred; // roots whose tree fits no order
  Placement made;
  Refusal refusal;
  bool has_met_lack = false;
};

Placer::Placer(const Index& index)
    : index_(index), ranks_(index.switches()), stamp_(index.switches()), up_(index.switches()),
      parent_(index.switches()), children_(index.switches()), at_distance_(kDeepest + 1) {}

void Placer::gather_leaves(const Request& request) {
  for (const SwitchIndex leaf : leaves_) {
    ranks_[leaf].clear();
  }
  leaves_.clear();
  for (std::uint32_t rank = 0; rank < request.seats.size(); ++rank) {
    std::vector<std::uint32_t>& ranks = ranks_[request.seats[rank].at];
    if (ranks.empty()) {
      leaves_.push_back(request.seats[rank].at);
    }
    ranks.push_back(rank);
  }
}

/// The switches at which the deepest leaf is so far below; the least loaded first.
std::vector<SwitchIndex> Placer::candidates(const Usage& usage, std::uint8_t depth) {
  std::vector<std::pair<double, SwitchIndex>> found;
  for (SwitchIndex root = 0; root < index_.switches(); ++root) {
    if (usage.out[root] != 0) {
      continue;
    }
    const auto distances = index_.distances(root);
    std::uint8_t deepest = 0;
    for (const SwitchIndex leaf : leaves_) {
      deepest = std::max(deepest, distances[leaf]);
      if (deepest > depth) {
        break;
      }
    }
    if (deepest == depth) {
      double load = 0;
      for (const Way& way : index_.ways(root)) {
        const std::uint32_t cable = plan::cable_of(way.link);
        load = std::max(load, usage.load[cable] / index_.rate(cable));
      }
      found.emplace_back(load, root);
    }
  }
  std::ranges::sort(found);
  found.resize(std::min(found.size(), kMostRoots));
  std::vector<SwitchIndex> roots;
  for (const auto& [load, root] : found) {
    roots.push_back(root);
  }
  return roots;
}

/// The best way from a switch towards the root: to a switch that the tree has already, else the
/// least loaded link.
Placer::Step Placer::best_step(SwitchIndex at, SwitchIndex root, Search& search) const {
  const auto distances = index_.distances(root);
  Step best;
  for (const Way& way : index_.ways(at)) {
    const std::uint32_t cable = plan::cable_of(way.link);
    if (distances[way.to] + 1 != distances[at] || search.usage.out[way.to] != 0 ||
        search.usage.shut[cable] != 0 || search.used[cable] != 0) {
      continue;
    }
    const double promised = search.usage.reserved[cable];
    const double most = kMostReserved * index_.rate(cable);
    if (search.request.is_reserved && promised + search.share > most) {
      search.note({.lack = Lack::bandwidth,
                   .where = at,
                   .needs = static_cast<std::uint64_t>(search.share),
                   .free = static_cast<std::uint64_t>(std::max(0.0, most - promised))});
      continue;
    }
    const Step step{.way = &way,
                    .load = (search.usage.load[cable] + search.share) / index_.rate(cable),
                    .is_new = stamp_[way.to] != now_};
    if (best.way == nullptr ||
        std::tuple(step.is_new, step.load) < std::tuple(best.is_new, best.load)) {
      best = step;
    }
  }
  return best;
}

void Placer::enter(SwitchIndex at, SwitchIndex root) {
  stamp_[at] = now_;
  children_[at] = static_cast<std::uint32_t>(ranks_[at].size());
  at_distance_[index_.distances(root)[at]].push_back(at);
}

/// From the leaves up, each switch to a parent that is nearer to the root. False: some switch has
/// none, or the tree's busiest link would be above `bound`.
bool Placer::climb(SwitchIndex root, Search& search, double bound, Candidate& found) {
  ++now_;
  for (auto& list : at_distance_) {
    list.clear();
  }
  for (const SwitchIndex leaf : leaves_) {
    enter(leaf, root);
  }
  found = {.root = root};
  for (std::size_t depth = at_distance_.size() - 1; depth > 0; --depth) {
    for (const SwitchIndex at : at_distance_[depth]) { // parents are entered nearer to the root
      const Step step = best_step(at, root, search);
      if (step.way == nullptr || step.load > bound) {
        return false;
      }
      found.busiest = std::max(found.busiest, step.load);
      found.sum += step.load;
      up_[at] = step.way->link;
      parent_[at] = step.way->to;
      if (step.is_new) {
        enter(step.way->to, root);
      }
      ++children_[step.way->to];
    }
  }
  Refusal lack;
  if (!has_room(search, root, lack)) {
    search.note(lack);
    return false;
  }
  return true;
}

bool Placer::has_room(const Search& search, SwitchIndex root, Refusal& refusal) const {
  if (children_[root] < kLeastChildren) {
    refusal = {.lack = Lack::tree, .where = root};
    return false;
  }
  for (const auto& list : at_distance_) {
    for (const SwitchIndex at : list) {
      const Room& free = search.room[at];
      const std::uint64_t members = children_[at] + (at == root ? 0U : 1U);
      const std::uint64_t frames = children_[at] * search.request.frames_per_child;
      const std::uint64_t rings = 1;
      if (free.rings < rings) {
        refusal = {Lack::rings, at, 0, rings, free.rings};
      } else if (free.members < members) {
        refusal = {Lack::members, at, 0, members, free.members};
      } else if (free.frames < frames) {
        refusal = {Lack::frames, at, 0, frames, free.frames};
      } else {
        continue;
      }
      return false;
    }
  }
  return true;
}

/// The least deep; of these the one whose busiest link is the least busy, then the lowest sum, then
/// the first switch.
Placer::Candidate Placer::best_root(Search& search) {
  Candidate best;
  for (std::uint8_t depth = 0; depth <= kDeepest && best.root == kNone; ++depth) {
    for (const SwitchIndex root : candidates(search.usage, depth)) {
      if (std::ranges::find(search.barred, root) != search.barred.end()) {
        continue;
      }
      const double bound =
          best.root == kNone ? std::numeric_limits<double>::infinity() : best.busiest;
      Candidate found;
      if (search.made.trees.empty()) {
        ++search.made.roots_looked_at;
      }
      if (climb(root, search, bound, found) &&
          (best.root == kNone || std::tuple(found.busiest, found.sum, found.root) <
                                     std::tuple(best.busiest, best.sum, best.root))) {
        best = found;
      }
    }
  }
  return best;
}

/// What is below each switch of the tree that was climbed last.
std::vector<Branch> Placer::branches(SwitchIndex root) const {
  std::vector<Branch> branches(index_.switches());
  for (auto list = at_distance_.rbegin(); list != at_distance_.rend(); ++list) { // the lowest first
    for (const SwitchIndex at : *list) {
      Branch& branch = branches[at];
      branch.ranks = ranks_[at];
      if (!branch.ranks.empty()) {
        branch.lowest = std::min(branch.lowest, branch.ranks.front());
      }
      if (at != root) {
        branch.parent = parent_[at];
        branch.up = up_[at];
        Branch& above = branches[branch.parent];
        above.below.push_back(at);
        above.lowest = std::min(above.lowest, branch.lowest);
      }
    }
  }
  return branches;
}

/// The tree of this root, which was found to be possible. It is kept if the ring order of earlier
/// trees is depth first in it too; else the root is barred.
void Placer::build(SwitchIndex root, Search& search) {
  Candidate found;
  climb(root, search, std::numeric_limits<double>::infinity(), found);
  TreeLayout laid = lay_out(search.request, branches(root), root, search.made.position);
  const auto out_of_order = search.request.order == Order::given
                                ? std::ranges::adjacent_find(laid.rank_at, std::greater{})
                                : laid.rank_at.end();
  if (out_of_order != laid.rank_at.end()) {
    search.barred.push_back(root);
    search.note({.lack = Lack::order, .where = root, .rank = *std::next(out_of_order)});
    return;
  }
  if (search.made.trees.empty()) {
    settle(search.made, std::move(laid.rank_at));
  } else if (laid.rank_at != search.made.rank_at) {
    search.barred.push_back(root);
    return;
  }
  for (const TreeSwitch& part : laid.switches) {
    const Room taken = room_of(part, search.request.frames_per_child);
    search.room[part.at].rings -= taken.rings;
    search.room[part.at].members -= taken.members;
    search.room[part.at].frames -= taken.frames;
    if (part.up != kNone) {
      search.used[plan::cable_of(part.up)] = 1;
    }
  }
  search.made.busiest = std::max(search.made.busiest, found.busiest);
  search.made.trees.push_back({.switches = std::move(laid.switches), .rate = search.share});
}

/// Behind which switch somebody is whom no tree reaches.
Refusal Placer::why_none(const Search& search) const {
  if (search.has_met_lack) {
    return search.refusal;
  }
  for (const SwitchIndex leaf : leaves_) {
    const bool is_open =
        search.usage.out[leaf] == 0 && std::ranges::any_of(index_.ways(leaf), [&](const Way& way) {
          return search.usage.shut[plan::cable_of(way.link)] == 0 && search.usage.out[way.to] == 0;
        });
    if (search.usage.out[leaf] != 0 || (leaves_.size() > 1 && !is_open)) {
      return {.lack = Lack::tree, .where = leaf, .rank = ranks_[leaf].front()};
    }
  }
  return {.lack = Lack::tree, .where = leaves_.back(), .rank = ranks_[leaves_.back()].front()};
}

/// With as many trees as were asked for; where there are not so many, again with what there are, so
/// that each has its share of the rate.
Answer Placer::place(const Request& request, const Usage& usage) {
  gather_leaves(request);
  std::uint32_t wanted = leaves_.size() == 1 ? 1 : request.trees;
  while (true) {
    Search search{.request = request,
                  .usage = usage,
                  .share = request.rate / wanted,
                  .used = std::vector<std::uint8_t>(index_.cables()),
                  .room = usage.room,
                  .barred = {},
                  .made = {},
                  .refusal = {}};
    if (std::ranges::any_of(leaves_, [&](SwitchIndex leaf) { return usage.out[leaf] != 0; })) {
      return why_none(search);
    }
    while (search.made.trees.size() < wanted) {
      const Candidate best = best_root(search);
      if (best.root == kNone) {
        break;
      }
      build(best.root, search);
    }
    const auto made = static_cast<std::uint32_t>(search.made.trees.size());
    const bool is_enough = made >= std::min(request.least, wanted);
    if (made == wanted && is_enough) {
      return std::move(search.made);
    }
    if (made == 0 || !is_enough) {
      return why_none(search);
    }
    wanted = made;
  }
}

Room room_of(const TreeSwitch& part, std::uint64_t frames_per_child) {
  const std::uint64_t children = part.children.size();
  return {.rings = 1,
          .members = children + (part.parent == kNone ? 0 : 1),
          .frames = children * frames_per_child};
}

void take(const Placement& placement, const Request& request, Usage& usage) {
  for (const Tree& tree : placement.trees) {
    for (const TreeSwitch& part : tree.switches) {
      const Room room = room_of(part, request.frames_per_child);
      usage.room[part.at].rings -= room.rings;
      usage.room[part.at].members -= room.members;
      usage.room[part.at].frames -= room.frames;
      if (part.up != kNone) {
        usage.load[plan::cable_of(part.up)] += tree.rate;
        usage.reserved[plan::cable_of(part.up)] += request.is_reserved ? tree.rate : 0;
      }
    }
  }
}

void give_back(const Placement& placement, const Request& request, Usage& usage) {
  for (const Tree& tree : placement.trees) {
    for (const TreeSwitch& part : tree.switches) {
      const Room room = room_of(part, request.frames_per_child);
      usage.room[part.at].rings += room.rings;
      usage.room[part.at].members += room.members;
      usage.room[part.at].frames += room.frames;
      if (part.up != kNone) {
        usage.load[plan::cable_of(part.up)] -= tree.rate;
        usage.reserved[plan::cable_of(part.up)] -= request.is_reserved ? tree.rate : 0;
      }
    }
  }
}

namespace {

std::string shape_from(const Tree& tree, const TreeSwitch& part) {
  std::vector<std::string> items;
  for (const TreeChild& child : part.children) {
    const auto below = std::ranges::find(tree.switches, child.below, &TreeSwitch::at);
    items.push_back(child.is_rank() ? fmt::format("{}", child.first) : shape_from(tree, *below));
  }
  return fmt::format("[{}]", fmt::join(items, ","));
}

} // namespace

std::string shape_of(const Tree& tree) {
  return shape_from(tree, tree.switches.front());
}

} // namespace weir::placement
