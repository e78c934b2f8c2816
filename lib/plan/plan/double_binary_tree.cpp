// SPDX-License-Identifier: BSD-3-Clause
#include "plan/routes.hpp"
#include "plan/schedule_builder.hpp"
#include "plan/schedules.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace weir::plan {
namespace {

/// By rank: its parent; kNone at the root.
using Parents = std::vector<std::uint32_t>;

/// NCCL's binary tree over 0 … ranks-1: odd ranks are leaves, 0 is the root with one child.
Parents first_tree(std::uint32_t ranks) {
  Parents parents(ranks, kNone);
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    const std::uint32_t bit = rank & (~rank + 1);
    const std::uint32_t up = (rank ^ bit) | (bit << 1);
    parents[rank] = up < ranks ? up : rank ^ bit;
  }
  return parents;
}

/// The same tree with other ranks, such that leaves become inner vertices and inner vertices
/// leaves: mirrored where that works, else shifted by one.
Parents second_tree(const Parents& first) {
  const auto ranks = static_cast<std::uint32_t>(first.size());
  const auto renamed = [&](std::uint32_t vertex) {
    return ranks % 2 == 0 ? ranks - 1 - vertex : (vertex + 1) % ranks;
  };
  Parents parents(ranks, kNone);
  for (std::uint32_t vertex = 0; vertex < ranks; ++vertex) {
    parents[renamed(vertex)] = first[vertex] == kNone ? kNone : renamed(first[vertex]);
  }
  return parents;
}

/// Edges as numbers: the edge above rank r of tree t is t · ranks + r.
class Colours {
 public:
  explicit Colours(const std::array<Parents, 2>& trees)
      : trees_(trees), ranks_(static_cast<std::uint32_t>(trees[0].size())),
        sibling_(2 * trees[0].size(), kNone), colour_(2 * trees[0].size(), kNone) {
    for (std::uint32_t tree = 0; tree < 2; ++tree) {
      find_siblings(tree);
    }
    for (std::uint32_t edge = 0; edge < 2 * ranks_; ++edge) {
      if (exists(edge) && colour_[edge] == kNone) {
        paint(edge);
      }
    }
  }

  std::uint32_t of(std::uint32_t tree, std::uint32_t rank) const {
    return colour_[tree * ranks_ + rank];
  }

 private:
  bool exists(std::uint32_t edge) const { return trees_[edge / ranks_][edge % ranks_] != kNone; }

  void find_siblings(std::uint32_t tree) {
    std::vector<std::uint32_t> first_child(ranks_, kNone);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const std::uint32_t parent = trees_[tree][rank];
      if (parent == kNone) {
        continue;
      }
      if (first_child[parent] == kNone) {
        first_child[parent] = rank;
      } else {
        sibling_[tree * ranks_ + rank] = tree * ranks_ + first_child[parent];
        sibling_[tree * ranks_ + first_child[parent]] = tree * ranks_ + rank;
      }
    }
  }

  /// An edge must differ from its sibling (their parent receives both) and from the other tree's
  /// edge above the same rank (which sends both). So each edge has at most two conflicts, one of
  /// each kind. The conflicts form paths and even cycles, so two colours are enough.
  void paint(std::uint32_t edge) {
    std::vector<std::uint32_t> open{edge};
    colour_[edge] = 0;
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      for (const std::uint32_t rival : {sibling_[at], (at + ranks_) % (2 * ranks_)}) {
        if (rival != kNone && exists(rival) && colour_[rival] == kNone) {
          colour_[rival] = 1 - colour_[at];
          open.push_back(rival);
        }
      }
    }
  }

  const std::array<Parents, 2>& trees_;
  std::uint32_t ranks_;
  std::vector<std::uint32_t> sibling_;
  std::vector<std::uint32_t> colour_;
};

/// By rank: the first stage of its edge's colour after those of all edges that must come before.
/// Stages count from 1; those of colour 0 are odd.
std::vector<Step> stages(const Parents& parents, const Colours& colours, std::uint32_t tree,
                         Operation operation) {
  const auto ranks = static_cast<std::uint32_t>(parents.size());
  std::vector<std::uint32_t> depth(ranks, 0);
  std::vector<std::uint32_t> order(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    order[rank] = rank;
    for (std::uint32_t at = rank; parents[at] != kNone; at = parents[at]) {
      ++depth[rank];
    }
  }
  const bool is_upwards = operation == Operation::reduce;
  std::ranges::stable_sort(order, {}, [&](std::uint32_t rank) {
    return is_upwards ? ranks - depth[rank] : depth[rank];
  });
  std::vector<Step> stage(ranks, 0);
  std::vector<Step> last_below(ranks, 0); // the latest stage of a rank's children
  for (const std::uint32_t rank : order) {
    const std::uint32_t parent = parents[rank];
    if (parent == kNone) {
      continue;
    }
    const Step before = is_upwards ? last_below[rank] : stage[parent];
    stage[rank] = before + 1 + (before % 2 == colours.of(tree, rank) ? 0 : 1);
    last_below[parent] = std::max(last_below[parent], stage[rank]);
  }
  return stage;
}

class TwoTrees {
 public:
  TwoTrees(const Topology& topology, std::span<const VertexId> nodes)
      : nodes_(nodes),
        ranks_(static_cast<std::uint32_t>(nodes.size())), trees_{first_tree(ranks_),
                                                                 second_tree(first_tree(ranks_))},
        colours_(trees_), builder_(topology, ranks_), router_(topology) {}

  Schedule build() && {
    const Step reduced = add(Operation::reduce, 0);
    add(Operation::gather, reduced);
    return std::move(builder_).finish(1, Lockstep::none);
  }

 private:
  /// Returns the last step.
  Step add(Operation operation, Step steps_before) {
    Step last = 0;
    for (std::uint32_t tree = 0; tree < 2; ++tree) {
      const std::vector<Step> stage = stages(trees_[tree], colours_, tree, operation);
      const std::uint32_t first_block = tree == 0 ? 0 : (ranks_ + 1) / 2;
      const std::uint32_t end_block = tree == 0 ? (ranks_ + 1) / 2 : ranks_;
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        if (trees_[tree][rank] == kNone) {
          continue;
        }
        const VertexId child = nodes_[rank];
        const VertexId parent = nodes_[trees_[tree][rank]];
        const VertexId from = operation == Operation::reduce ? child : parent;
        const VertexId to = operation == Operation::reduce ? parent : child;
        const std::vector<LinkId> route = router_.route(from, to);
        for (std::uint32_t block = first_block; block < end_block; ++block) {
          const Step step = steps_before + 2 * (block - first_block) + stage[rank];
          builder_.add({operation, block, from, to, step, {block, 1}, {}}, route);
          last = std::max(last, step);
        }
      }
    }
    return last;
  }

  std::span<const VertexId> nodes_;
  std::uint32_t ranks_;
  std::array<Parents, 2> trees_;
  Colours colours_;
  ScheduleBuilder builder_;
  Router router_;
};

} // namespace

Schedule double_binary_tree_schedule(const Topology& topology,
                                     std::span<const VertexId> participants) {
  return TwoTrees(topology, participants).build();
}

} // namespace weir::plan
