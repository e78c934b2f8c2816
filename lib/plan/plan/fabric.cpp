// SPDX-License-Identifier: BSD-3-Clause
#include "plan/fabric.hpp"

#include "plan/routes.hpp"
#include "plan/spanning_trees.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace weir::plan {
namespace {

/// Switches below a root, breadth first over cables that no other ring uses.
struct SwitchTree {
  std::map<VertexId, LinkId> up; // switch → link towards the root; the root is not in it
  VertexId root = kNone;
  std::uint32_t depth = 0;
};

class FabricPlanner {
 public:
  FabricPlanner(const Topology& topology, std::span<const VertexId> participants)
      : topology_(topology), is_taken_(topology.links().size() / 2),
        nodes_below_(topology.vertex_count()) {
    for (const VertexId node : participants) {
      const VertexId at = switch_of(topology, node);
      if (at == kNone) {
        throw PlanError(fmt::format("{} is on no switch; allowed: participants that have a link to "
                                    "a switch, as nobody else adds up for them",
                                    topology.name(node)));
      }
      nodes_below_[at].push_back(node);
    }
  }

  FabricPlan plan(std::uint32_t most_rings) {
    std::vector<SwitchTree> trees = shallow_trees(most_rings);
    if (trees.empty()) {
      throw PlanError("no tree of switches reaches every participant; allowed: switches that are "
                      "joined to each other");
    }
    if (trees.size() < most_rings && !trees.front().up.empty()) {
      std::vector<SwitchTree> deeper = spanning_trees(most_rings);
      if (deeper.size() > trees.size()) {
        trees = std::move(deeper);
      }
    }
    FabricPlan fabric;
    for (const SwitchTree& tree : trees) {
      fabric.rings.push_back(ring_over(tree));
    }
    return fabric;
  }

 private:
  /// Each tree is as shallow as the earlier ones allow. The first may take cables that others need.
  std::vector<SwitchTree> shallow_trees(std::uint32_t most) {
    is_taken_.assign(is_taken_.size(), false);
    std::vector<SwitchTree> trees;
    while (trees.size() < most) {
      const SwitchTree tree = best_tree();
      if (tree.root == kNone) {
        break;
      }
      trees.push_back(tree);
      if (tree.up.empty()) {
        break; // one switch is enough: another ring would share everything with this one
      }
      for (const auto& [vertex, link] : tree.up) {
        is_taken_[cable_of(link)] = true;
      }
    }
    return trees;
  }

  /// As many trees as fit on the cables between switches that have participants. Where all switches
  /// have some, as in a BiGraph, the shallowest tree would take all cables of its root; these trees
  /// do not.
  std::vector<SwitchTree> spanning_trees(std::uint32_t most) {
    std::vector<std::uint32_t> number(topology_.vertex_count(), kNone);
    std::uint32_t switches = 0;
    for (VertexId at = topology_.node_count(); at < topology_.vertex_count(); ++at) {
      if (!nodes_below_[at].empty()) {
        number[at] = switches++;
      }
    }
    std::vector<Edge> edges;
    std::vector<LinkId> cables;
    for (LinkId link = 0; link < topology_.links().size(); link += 2) {
      const auto& [from, to, traits] = topology_.link(link);
      if (number[from] != kNone && number[to] != kNone) {
        edges.push_back({number[from], number[to]});
        cables.push_back(cable_of(link));
      }
    }
    std::vector<SwitchTree> trees;
    for (const auto& tree : disjoint_spanning_trees(switches, edges, most)) {
      is_taken_.assign(is_taken_.size(), true);
      for (const std::uint32_t edge : tree) {
        is_taken_[cables[edge]] = false;
      }
      trees.push_back(best_tree());
    }
    return trees;
  }

  /// The least deep; of these the one with the fewest switches; of these the first root.
  SwitchTree best_tree() const {
    SwitchTree best;
    for (VertexId root = topology_.node_count(); root < topology_.vertex_count(); ++root) {
      SwitchTree tree = tree_from(root);
      if (tree.root != kNone &&
          (best.root == kNone ||
           std::tuple(tree.depth, tree.up.size()) < std::tuple(best.depth, best.up.size()))) {
        best = std::move(tree);
      }
    }
    return best;
  }

  /// Root kNone: some participant cannot be reached.
  SwitchTree tree_from(VertexId root) const {
    std::map<VertexId, LinkId> up;
    std::map<VertexId, std::uint32_t> depth{{root, 0}};
    std::vector<VertexId> open{root};
    for (std::size_t next = 0; next < open.size(); ++next) {
      for (const LinkId down : topology_.outgoing(open[next])) {
        const VertexId below = topology_.link(down).to;
        if (!topology_.is_node(below) && !is_taken_[cable_of(down)] &&
            depth.emplace(below, depth[open[next]] + 1).second) {
          up[below] = Topology::reverse_of(down);
          open.push_back(below);
        }
      }
    }
    return pruned(root, up, depth);
  }

  /// Keeps only what leads to participants.
  SwitchTree pruned(VertexId root, const std::map<VertexId, LinkId>& up,
                    const std::map<VertexId, std::uint32_t>& depth) const {
    SwitchTree tree;
    for (VertexId at = topology_.node_count(); at < topology_.vertex_count(); ++at) {
      if (nodes_below_[at].empty()) {
        continue;
      }
      if (!depth.contains(at)) {
        return {};
      }
      tree.depth = std::max(tree.depth, depth.at(at));
      for (VertexId step = at; step != root && !tree.up.contains(step);
           step = topology_.link(up.at(step)).to) {
        tree.up[step] = up.at(step);
      }
    }
    tree.root = root;
    return tree;
  }

  FabricRing ring_over(const SwitchTree& tree) const {
    FabricRing ring;
    add_switch(tree, tree.root, kNone, ring);
    return ring;
  }

  /// Adds `at` and what is below it, depth first. Returns its entry among its parent's children.
  FabricChild add_switch(const SwitchTree& tree, VertexId at, LinkId up, FabricRing& ring) const {
    const std::size_t position = ring.switches.size();
    ring.switches.emplace_back();
    FabricSwitch made;
    made.vertex = at;
    made.up = up;
    made.parent = up == kNone ? kNone : topology_.link(up).to;
    made.first_rank = static_cast<std::uint32_t>(ring.members.size());
    for (const LinkId down : topology_.outgoing(at)) {
      const VertexId below = topology_.link(down).to;
      if (is_member_of(at, below, made)) {
        made.children.push_back({below, down, static_cast<std::uint32_t>(ring.members.size()), 1});
        ring.members.push_back(below);
      } else if (const auto child = tree.up.find(below);
                 child != tree.up.end() && child->second == Topology::reverse_of(down)) {
        made.children.push_back(add_switch(tree, below, child->second, ring));
      }
    }
    made.rank_count = static_cast<std::uint32_t>(ring.members.size()) - made.first_rank;
    const FabricChild as_child{at, up == kNone ? kNone : Topology::reverse_of(up), made.first_rank,
                               made.rank_count};
    ring.switches[position] = std::move(made);
    return as_child;
  }

  /// A participant on this switch; by its first cable if it has several.
  bool is_member_of(VertexId at, VertexId node, const FabricSwitch& made) const {
    return std::ranges::find(nodes_below_[at], node) != nodes_below_[at].end() &&
           std::ranges::find(made.children, node, &FabricChild::vertex) == made.children.end();
  }

  const Topology& topology_;
  std::vector<bool> is_taken_;                     // by cable
  std::vector<std::vector<VertexId>> nodes_below_; // by switch
};

} // namespace

FabricPlan plan_fabric(const Topology& topology, std::span<const VertexId> participants,
                       std::uint32_t most_rings) {
  return FabricPlanner(topology, participants).plan(most_rings);
}

} // namespace weir::plan
