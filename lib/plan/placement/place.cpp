// SPDX-License-Identifier: BSD-3-Clause
#include "placement/place.hpp"

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

} // namespace

Usage::Usage(const Index& index)
    : load(index.cables()), reserved(index.cables()), shut(index.cables()), room(index.switches()),
      out(index.switches()) {}

/// One call of place().
struct Placer::Search {
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

/// From the leaves up, each switch to a parent that is nearer to the root: one that the tree has
/// already, else the least loaded link's. False: some switch has none, or the tree's busiest link
/// would be above `bound`.
bool Placer::climb(SwitchIndex root, Search& search, double bound, Candidate& found) {
  const auto distances = index_.distances(root);
  ++now_;
  std::uint8_t deepest = 0;
  const auto enter = [&](SwitchIndex at) {
    stamp_[at] = now_;
    children_[at] = static_cast<std::uint32_t>(ranks_[at].size());
    at_distance_[distances[at]].push_back(at);
    deepest = std::max(deepest, distances[at]);
  };
  for (auto& list : at_distance_) {
    list.clear();
  }
  for (const SwitchIndex leaf : leaves_) {
    enter(leaf);
  }
  found = {.root = root};
  for (std::uint8_t depth = deepest; depth > 0; --depth) {
    for (std::size_t next = 0; next < at_distance_[depth].size(); ++next) {
      const SwitchIndex at = at_distance_[depth][next];
      const Way* best = nullptr;
      double best_load = 0;
      bool is_best_in = false;
      for (const Way& way : index_.ways(at)) {
        if (distances[way.to] + 1 != depth || search.usage.out[way.to] != 0) {
          continue;
        }
        const std::uint32_t cable = plan::cable_of(way.link);
        if (search.usage.shut[cable] != 0 || search.used[cable] != 0) {
          continue;
        }
        if (search.request.is_reserved &&
            search.usage.reserved[cable] + search.share > kMostReserved * index_.rate(cable)) {
          if (!search.has_met_lack) {
            search.refusal = {
                .lack = Lack::bandwidth,
                .where = at,
                .needs = static_cast<std::uint64_t>(search.share),
                .free = static_cast<std::uint64_t>(std::max(
                    0.0, kMostReserved * index_.rate(cable) - search.usage.reserved[cable]))};
            search.has_met_lack = true;
          }
          continue;
        }
        const double load = (search.usage.load[cable] + search.share) / index_.rate(cable);
        const bool is_in = stamp_[way.to] == now_;
        if (best == nullptr || std::tuple(!is_in, load) < std::tuple(!is_best_in, best_load)) {
          best = &way;
          best_load = load;
          is_best_in = is_in;
        }
      }
      if (best == nullptr || best_load > bound) {
        return false;
      }
      found.busiest = std::max(found.busiest, best_load);
      found.sum += best_load;
      up_[at] = best->link;
      parent_[at] = best->to;
      if (!is_best_in) {
        enter(best->to);
      }
      ++children_[best->to];
    }
  }
  Refusal lack;
  if (!has_room(search, root, lack)) {
    if (!search.has_met_lack) {
      search.refusal = lack;
      search.has_met_lack = true;
    }
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

namespace {

/// A switch of a tree with what is below it.
struct Branch {
  std::uint32_t lowest = UINT32_MAX; // rank
  std::vector<SwitchIndex> below;
};

} // namespace

/// The tree of this root, which was found to be possible. It is kept if the ring order of earlier
/// trees is depth first in it too; else the root is barred.
void Placer::build(SwitchIndex root, Search& search) {
  Candidate found;
  climb(root, search, std::numeric_limits<double>::infinity(), found);
  std::vector<SwitchIndex> members;
  for (const auto& list : at_distance_) {
    members.insert(members.end(), list.begin(), list.end());
  }
  std::ranges::stable_sort(members, std::greater{},
                           [&](SwitchIndex at) { return index_.distances(root)[at]; });
  std::vector<Branch> branches(index_.switches());
  for (const SwitchIndex at : members) { // the lowest first
    Branch& branch = branches[at];
    if (!ranks_[at].empty()) {
      branch.lowest = std::min(branch.lowest, ranks_[at].front());
    }
    if (at != root) {
      Branch& above = branches[parent_[at]];
      above.below.push_back(at);
      above.lowest = std::min(above.lowest, branch.lowest);
    }
  }
  const bool is_first = search.made.trees.empty();
  std::vector<std::uint32_t> rank_at;
  Tree tree{.switches = {}, .rate = search.share};
  const auto key_of = [&](SwitchIndex at) {
    // Where the order is settled, depth first in that order.
    return is_first ? branches[at].lowest : search.made.position[branches[at].lowest];
  };
  const auto visit = [&](const auto& self, SwitchIndex at) -> TreeChild {
    const std::size_t place = tree.switches.size();
    tree.switches.emplace_back();
    TreeSwitch made{.at = at, .children = {}};
    made.parent = at == root ? kNone : parent_[at];
    made.up = at == root ? kNone : up_[at];
    made.first = static_cast<std::uint32_t>(rank_at.size());
    struct Item {
      std::uint32_t key;
      SwitchIndex below; // kNone: its own ranks
    };
    std::vector<Item> items;
    if (!ranks_[at].empty()) {
      const std::uint32_t lowest = ranks_[at].front();
      items.push_back({is_first ? lowest : search.made.position[lowest], kNone});
    }
    for (const SwitchIndex below : branches[at].below) {
      items.push_back({key_of(below), below});
    }
    std::ranges::sort(items, {}, &Item::key);
    for (const Item& item : items) {
      if (item.below != kNone) {
        made.children.push_back(self(self, item.below));
        continue;
      }
      for (const std::uint32_t rank : ranks_[at]) {
        made.children.push_back({.below = kNone,
                                 .down = search.request.seats[rank].down,
                                 .first = static_cast<std::uint32_t>(rank_at.size()),
                                 .count = 1});
        rank_at.push_back(rank);
      }
    }
    made.count = static_cast<std::uint32_t>(rank_at.size()) - made.first;
    const TreeChild as_child{.below = at,
                             .down = at == root ? kNone : Topology::reverse_of(up_[at]),
                             .first = made.first,
                             .count = made.count};
    tree.switches[place] = std::move(made);
    return as_child;
  };
  visit(visit, root);
  const auto out_of_order = search.request.order == Order::given
                                ? std::ranges::adjacent_find(rank_at, std::greater{})
                                : rank_at.end();
  if (out_of_order != rank_at.end()) {
    search.barred.push_back(root);
    if (!search.has_met_lack) {
      search.refusal = {.lack = Lack::order, .where = root, .rank = *std::next(out_of_order)};
      search.has_met_lack = true;
    }
    return;
  }
  if (!is_first && rank_at != search.made.rank_at) {
    search.barred.push_back(root);
    return;
  }
  if (is_first) {
    search.made.rank_at = rank_at;
    search.made.position.resize(rank_at.size());
    for (std::uint32_t position = 0; position < rank_at.size(); ++position) {
      search.made.position[rank_at[position]] = position;
    }
  }
  for (const TreeSwitch& part : tree.switches) {
    const Room taken = room_of(part, search.request.frames_per_child);
    search.room[part.at].rings -= taken.rings;
    search.room[part.at].members -= taken.members;
    search.room[part.at].frames -= taken.frames;
    if (part.up != kNone) {
      search.used[plan::cable_of(part.up)] = 1;
    }
  }
  search.made.busiest = std::max(search.made.busiest, found.busiest);
  search.made.trees.push_back(std::move(tree));
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
