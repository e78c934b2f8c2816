// SPDX-License-Identifier: BSD-3-Clause
#include "plan/free_links.hpp"
#include "plan/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace weir::plan {
namespace {

/// A tree that is not complete.
struct Seedling {
  Bits has;                           // participants, by their place in FreeLinks
  std::vector<VertexId> parents;      // in order of adding, without those that are spent
  std::size_t cursor = 0;             // the first parent that may still find a child in this step
  std::size_t examinable = 0;         // number of parents from earlier steps
  std::uint32_t missing = 0;          // number of missing participants
  std::vector<VertexId> closed_gates; // switches from which nothing can be found in this step
};

/// Algorithm 1 of MultiTree.
class Grower {
 public:
  Grower(const Topology& topology, std::span<const VertexId> participants)
      : topology_(topology), participants_(participants), links_(topology, participants) {
    for (const VertexId root : participants) {
      plant(root);
    }
  }

  Forest grow() {
    while (std::ranges::any_of(seedlings_, [](const Seedling& s) { return s.missing > 0; })) {
      ++forest_.step_count;
      begin_step();
      bool has_added = false;
      while (add_round()) {
        has_added = true;
      }
      if (!has_added) {
        throw_stuck();
      }
    }
    return std::move(forest_);
  }

 private:
  void plant(VertexId root) {
    Seedling seedling;
    seedling.has = Bits(participants_.size());
    seedling.has.set(links_.place(root));
    seedling.parents.push_back(root);
    seedling.missing = static_cast<std::uint32_t>(participants_.size() - 1);
    seedlings_.push_back(std::move(seedling));
    Tree tree;
    tree.root = root;
    tree.edges.reserve(participants_.size() - 1);
    forest_.trees.push_back(std::move(tree));
  }

  void begin_step() {
    links_.restore();
    for (Seedling& seedling : seedlings_) {
      if (seedling.missing > 0 && links_.may_be_spent()) {
        std::erase_if(seedling.parents,
                      [&](VertexId parent) { return links_.is_spent(parent, seedling.has); });
      }
      seedling.cursor = 0;
      seedling.examinable = seedling.parents.size();
      seedling.closed_gates.clear();
    }
  }

  /// Gives each tree one turn, by ascending root. True when any of them has grown.
  bool add_round() {
    bool has_added = false;
    for (std::size_t tree = 0; tree < seedlings_.size(); ++tree) {
      if (seedlings_[tree].missing > 0 && links_.may_grow(seedlings_[tree].has)) {
        has_added |= add_child(seedlings_[tree], forest_.trees[tree]);
      }
    }
    return has_added;
  }

  bool add_child(Seedling& seedling, Tree& tree) {
    // Within a step links are only taken and trees only grow. So a parent that finds nothing now
    // finds nothing until the next step.
    for (; seedling.cursor < seedling.examinable; ++seedling.cursor) {
      const VertexId parent = seedling.parents[seedling.cursor];
      const VertexId child = find_child(seedling, parent);
      if (child != kNone) {
        const auto begin = static_cast<std::uint32_t>(forest_.routes.size());
        links_.take_way(parent, child, forest_.routes);
        const auto hops = static_cast<std::uint32_t>(forest_.routes.size()) - begin;
        tree.edges.push_back({parent, child, forest_.step_count, {begin, hops}});
        seedling.has.set(links_.place(child));
        seedling.parents.push_back(child);
        --seedling.missing;
        return true;
      }
    }
    return false;
  }

  VertexId find_child(Seedling& seedling, VertexId parent) {
    const VertexId gate = links_.gate_of(parent);
    if (!links_.can_send(parent) ||
        (gate != kNone &&
         std::ranges::find(seedling.closed_gates, gate) != seedling.closed_gates.end())) {
      return kNone;
    }
    const VertexId child = links_.find_child(parent, seedling.has);
    if (child == kNone && gate != kNone) {
      seedling.closed_gates.push_back(gate);
    }
    return child;
  }

  [[noreturn]] void throw_stuck() const {
    for (std::size_t tree = 0; tree < seedlings_.size(); ++tree) {
      for (const VertexId node : participants_) {
        if (!seedlings_[tree].has.has(links_.place(node))) {
          throw PlanError(fmt::format("the tree of {} cannot reach {}; allowed: participants that "
                                      "reach each other through switches",
                                      topology_.name(forest_.trees[tree].root),
                                      topology_.name(node)));
        }
      }
    }
    throw PlanError("no tree can grow");
  }

  const Topology& topology_;
  std::span<const VertexId> participants_;
  FreeLinks links_;
  std::vector<Seedling> seedlings_; // by rank of the root
  Forest forest_;
};

} // namespace

Forest grow_forest(const Topology& topology, std::span<const VertexId> participants) {
  return Grower(topology, participants).grow();
}

std::uint32_t height_of(const Tree& tree) {
  std::map<VertexId, std::uint32_t> depth{{tree.root, 0}};
  std::uint32_t height = 0;
  for (const TreeEdge& edge : tree.edges) {
    const std::uint32_t below = depth[edge.parent] + 1;
    depth[edge.child] = below;
    height = std::max(height, below);
  }
  return height;
}

} // namespace weir::plan
