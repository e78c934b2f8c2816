// SPDX-License-Identifier: BSD-3-Clause
#include "plan/spanning_trees.hpp"

#include <algorithm>
#include <cassert>

namespace weir::plan {
namespace {

constexpr std::uint32_t kNothing = UINT32_MAX;

/// Edges without a cycle. Each vertex knows its way to the root of its tree.
class EdgeForest {
 public:
  EdgeForest(std::uint32_t vertices, std::span<const Edge> edges)
      : edges_(edges), up_(vertices, kNothing), root_(vertices), depth_(vertices) {
    for (std::uint32_t vertex = 0; vertex < vertices; ++vertex) {
      root_[vertex] = vertex;
    }
  }

  const std::vector<std::uint32_t>& members() const { return members_; }

  bool joins(std::uint32_t edge) const {
    return root_[edges_[edge].one] != root_[edges_[edge].other];
  }

  /// Calls `see` with each edge on the path between the ends of an edge that would close a cycle.
  template <class See>
  void walk_circle(std::uint32_t edge, const See& see) const {
    std::uint32_t one = edges_[edge].one;
    std::uint32_t other = edges_[edge].other;
    while (one != other) {
      std::uint32_t& lower = depth_[one] < depth_[other] ? other : one;
      see(up_[lower]);
      lower = far_end(up_[lower], lower);
    }
  }

  /// Replaces `out` by `in`. There is no cycle afterwards.
  void exchange(std::uint32_t out, std::uint32_t in) {
    std::erase(members_, out);
    assert(std::ranges::find(members_, in) == members_.end());
    members_.push_back(in);
    assert(members_.size() < up_.size());
    grow_again();
  }

 private:
  std::uint32_t far_end(std::uint32_t edge, std::uint32_t vertex) const {
    return edges_[edge].one == vertex ? edges_[edge].other : edges_[edge].one;
  }

  void grow_again() {
    const auto vertices = static_cast<std::uint32_t>(up_.size());
    std::vector<std::vector<std::uint32_t>> at(vertices);
    for (const std::uint32_t edge : members_) {
      at[edges_[edge].one].push_back(edge);
      at[edges_[edge].other].push_back(edge);
    }
    root_.assign(vertices, kNothing);
    std::vector<std::uint32_t> open;
    for (std::uint32_t root = 0; root < vertices; ++root) {
      if (root_[root] != kNothing) {
        continue;
      }
      root_[root] = root;
      up_[root] = kNothing;
      depth_[root] = 0;
      open.assign(1, root);
      for (std::size_t next = 0; next < open.size(); ++next) {
        for (const std::uint32_t edge : at[open[next]]) {
          const std::uint32_t below = far_end(edge, open[next]);
          if (root_[below] == kNothing) {
            root_[below] = root;
            up_[below] = edge;
            depth_[below] = depth_[open[next]] + 1;
            open.push_back(below);
          }
        }
      }
    }
  }

  std::span<const Edge> edges_;
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t> up_;   // by vertex: the edge towards its root
  std::vector<std::uint32_t> root_; // by vertex
  std::vector<std::uint32_t> depth_;
};

/// k forests with as many edges together as possible.
class Packing {
 public:
  Packing(std::uint32_t vertices, std::span<const Edge> edges, std::uint32_t count)
      : edges_(edges), forests_(count, EdgeForest(vertices, edges)), owner_(edges.size(), kNothing),
        came_from_(edges.size()), seen_by_(edges.size(), kNothing) {
    for (std::uint32_t edge = 0; edge < edges.size(); ++edge) {
      place(edge);
    }
  }

  const std::vector<EdgeForest>& forests() const { return forests_; }

 private:
  /// Finds a forest for `added`, moving other edges if needed. If there is none, changes nothing.
  /// The search is breadth first: a shortest chain of exchanges never makes a cycle.
  void place(std::uint32_t added) {
    open_.assign(1, added);
    seen_by_[added] = added;
    came_from_[added] = kNothing;
    for (std::size_t next = 0; next < open_.size(); ++next) {
      const std::uint32_t edge = open_[next];
      for (std::uint32_t turn = 0; turn < forests_.size(); ++turn) {
        // Each edge starts at another forest; else the first forests would fill up alone.
        const auto forest = static_cast<std::uint32_t>((added + turn) % forests_.size());
        if (owner_[edge] == forest) {
          continue;
        }
        if (forests_[forest].joins(edge)) {
          return move_along(edge, forest);
        }
        forests_[forest].walk_circle(edge, [&](std::uint32_t other) {
          if (seen_by_[other] != added) {
            seen_by_[other] = added;
            came_from_[other] = edge;
            open_.push_back(other);
          }
        });
      }
    }
  }

  /// Moves `edge` to `forest`. The edge that was there moves to the forest where `edge` was, and so
  /// on.
  void move_along(std::uint32_t edge, std::uint32_t forest) {
    std::uint32_t out = kNothing;
    while (edge != kNothing) {
      const std::uint32_t left = owner_[edge];
      forests_[forest].exchange(out, edge);
      owner_[edge] = forest;
      forest = left;
      out = edge;
      edge = came_from_[edge];
    }
  }

  std::span<const Edge> edges_;
  std::vector<EdgeForest> forests_;
  std::vector<std::uint32_t> owner_; // by edge: its forest
  // State of the present search.
  std::vector<std::uint32_t> came_from_; // by edge: the edge that would take its place
  std::vector<std::uint32_t> seen_by_;   // by edge: the added edge whose search saw it last
  std::vector<std::uint32_t> open_;
};

} // namespace

std::vector<std::vector<std::uint32_t>>
disjoint_spanning_trees(std::uint32_t vertices, std::span<const Edge> edges, std::uint32_t most) {
  std::vector<std::vector<std::uint32_t>> trees;
  if (vertices < 2) {
    return trees;
  }
  const std::size_t tree_edges = vertices - 1;
  const std::size_t bound = std::min<std::size_t>(most, edges.size() / tree_edges);
  for (auto count = static_cast<std::uint32_t>(bound); count != 0; --count) {
    const Packing packing(vertices, edges, count);
    const auto is_whole = [&](const EdgeForest& forest) {
      return forest.members().size() == tree_edges;
    };
    if (std::ranges::all_of(packing.forests(), is_whole)) {
      for (const EdgeForest& forest : packing.forests()) {
        trees.push_back(forest.members());
      }
      return trees;
    }
  }
  return trees;
}

} // namespace weir::plan
