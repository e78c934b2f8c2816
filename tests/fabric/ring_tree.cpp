// SPDX-License-Identifier: BSD-3-Clause
#include "ring_tree.hpp"

#include <algorithm>
#include <utility>

namespace weir::fabric {
namespace {

using network::kPercent;

constexpr std::uint16_t kDeepest = 2; // links from switch 0

std::uint16_t depth_of(const Layout& layout, std::uint16_t node) {
  std::uint16_t depth = 0;
  for (; node != 0; node = layout.above[node]) {
    ++depth;
  }
  return depth;
}

bool is_leaf(const Layout& layout, std::uint16_t node) {
  return std::find(layout.above.begin() + 1, layout.above.end(), node) == layout.above.end();
}

std::uint16_t draw_hosts_count(Dice& dice) {
  const std::uint64_t most = dice.pick<std::uint64_t>({4, 6, 6, 8, 8, 8, 12, 24});
  return static_cast<std::uint16_t>(dice.between(2, most));
}

/// Draws one ring's tree.
class Drawing {
 public:
  Drawing(Dice& dice, const Layout& layout, const std::vector<std::uint16_t>& hosts)
      : dice_(dice), layout_(layout), hosts_(layout.nodes()), is_on_way_(layout.nodes()) {
    for (const std::uint16_t host : hosts) {
      hosts_[layout.homes[host]].push_back(host);
      for (std::uint16_t node = layout.homes[host]; node != 0; node = layout.above[node]) {
        is_on_way_[node] = true;
      }
    }
    is_on_way_[0] = true;
    leave_out_the_top();
    tree_.parts.resize(layout.nodes());
  }

  RingTree draw() {
    tree_.root = top_;
    const auto other = static_cast<std::uint16_t>(dice_.below(layout_.nodes()));
    const bool may_be_root =
        is_on_way_[other] && hosts_[other].size() + neighbours_of(other).size() >= 2;
    if (may_be_root && dice_.chance(40 * kPercent)) {
      tree_.root = other;
    }
    descend(tree_.root, std::nullopt);
    return std::move(tree_);
  }

  std::vector<std::uint16_t> take_order() { return std::move(order_); }

 private:
  /// A switch with a single child cannot be the root.
  void leave_out_the_top() {
    while (hosts_[top_].empty() && neighbours_of(top_).size() == 1) {
      is_on_way_[top_] = false;
      top_ = neighbours_of(top_).front();
    }
  }

  std::vector<std::uint16_t> neighbours_of(std::uint16_t node) const {
    std::vector<std::uint16_t> neighbours;
    for (std::uint16_t other = 0; other < layout_.nodes(); ++other) {
      const bool is_linked = (other != 0 && layout_.above[other] == node) ||
                             (node != 0 && layout_.above[node] == other);
      if (is_on_way_[other] && is_linked && other != node) {
        neighbours.push_back(other);
      }
    }
    return neighbours;
  }

  struct Step {
    std::optional<std::uint16_t> node;
    std::uint16_t host = 0;
  };

  /// The switch's children, in any order.
  std::vector<Step> steps_from(std::uint16_t node, std::optional<std::uint16_t> parent) {
    std::vector<Step> steps;
    for (const std::uint16_t host : hosts_[node]) {
      steps.push_back({std::nullopt, host});
    }
    for (const std::uint16_t other : neighbours_of(node)) {
      if (other != parent) {
        steps.push_back({other});
      }
    }
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      std::swap(steps[i], steps[i + dice_.below(steps.size() - i)]);
    }
    return steps;
  }

  void descend(std::uint16_t node, std::optional<std::uint16_t> parent) {
    tree_.parts[node].parent = parent;
    for (const Step& step : steps_from(node, parent)) {
      const auto first = static_cast<std::uint16_t>(order_.size());
      if (step.node) {
        descend(*step.node, node);
      } else {
        order_.push_back(step.host);
      }
      const auto count = static_cast<std::uint16_t>(order_.size() - first);
      tree_.parts[node].children.push_back({{first, count}, step.node});
    }
  }

  Dice& dice_;
  const Layout& layout_;
  std::vector<std::vector<std::uint16_t>> hosts_; // by switch
  std::vector<bool> is_on_way_;                   // by switch: leads to hosts of the ring
  std::uint16_t top_ = 0;
  RingTree tree_;
  std::vector<std::uint16_t> order_; // hosts by rank
};

} // namespace

std::uint16_t Layout::diameter() const {
  std::uint16_t longest = 0;
  for (std::uint16_t one = 0; one < nodes(); ++one) {
    for (std::uint16_t other = 0; other < one; ++other) {
      std::uint16_t a = one;
      std::uint16_t b = other;
      std::uint16_t length = 0;
      for (; a != b; ++length) {
        std::uint16_t& deeper = depth_of(*this, a) >= depth_of(*this, b) ? a : b;
        deeper = above[deeper];
      }
      longest = std::max(longest, length);
    }
  }
  return longest;
}

Layout Layout::star(std::uint16_t hosts) {
  return {{0}, std::vector<std::uint16_t>(hosts, 0)};
}

/// Each leaf has a host, if there are enough.
Layout Layout::draw(Dice& dice) {
  Layout layout{{0}, {}};
  const auto nodes = dice.pick<std::uint16_t>({2, 2, 3, 3, 3, 4, 4, 5, 6, 7});
  while (layout.nodes() < nodes) {
    const auto above = static_cast<std::uint16_t>(dice.below(layout.nodes()));
    if (depth_of(layout, above) < kDeepest) {
      layout.above.push_back(above);
    }
  }
  const std::uint16_t hosts = draw_hosts_count(dice);
  for (std::uint16_t node = 1; node < nodes && layout.homes.size() < hosts; ++node) {
    if (is_leaf(layout, node)) {
      layout.homes.push_back(node);
    }
  }
  while (layout.homes.size() < hosts) {
    const auto node = static_cast<std::uint16_t>(dice.below(nodes));
    if (is_leaf(layout, node) || dice.chance(40 * kPercent)) {
      layout.homes.push_back(node);
    }
  }
  return layout;
}

ring::RankRange RingTree::Part::range() const {
  const std::uint16_t first = children.front().ranks.first;
  return {first, static_cast<std::uint16_t>(children.back().ranks.last() - first + 1u)};
}

std::optional<std::uint16_t> RingTree::Part::sender_for(std::uint16_t rank,
                                                        std::uint16_t world) const {
  for (std::uint16_t child = 0; child < children.size(); ++child) {
    if (children[child].ranks.last() == rank) {
      return child;
    }
  }
  const bool is_parents = exists() && parent && (rank + 1u) % world == range().first;
  return is_parents ? std::optional(static_cast<std::uint16_t>(children.size())) : std::nullopt;
}

bool RingTree::has_several_switches() const {
  return std::ranges::count_if(parts, [](const Part& part) { return part.exists(); }) > 1;
}

std::vector<std::uint16_t> RingTree::way_of(std::uint16_t rank, std::uint16_t world) const {
  const auto child_with = [this](std::uint16_t node, std::uint16_t wanted) {
    return *std::ranges::find_if(parts[node].children,
                                 [&](const Child& child) { return child.ranks.has(wanted); });
  };
  std::vector<std::uint16_t> way{root};
  while (const auto below = child_with(way.back(), rank).node) {
    way.push_back(*below);
  }
  std::ranges::reverse(way);
  const auto turn = std::ranges::find_if(way, [&](std::uint16_t node) {
    return !parts[node].is_outgoing(*parts[node].sender_for(rank, world));
  });
  way.erase(turn + 1, way.end());
  const auto next = static_cast<std::uint16_t>((rank + 1u) % world);
  while (const auto below = child_with(way.back(), next).node) {
    way.push_back(*below);
  }
  return way;
}

RingTree RingTree::star(std::uint16_t ranks) {
  RingTree tree;
  Part& part = tree.parts.emplace_back();
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    part.children.push_back({{rank, 1}, std::nullopt});
  }
  return tree;
}

RingTree RingTree::draw(Dice& dice, const Layout& layout, std::vector<std::uint16_t>& hosts) {
  Drawing drawing(dice, layout, hosts);
  RingTree tree = drawing.draw();
  hosts = drawing.take_order();
  return tree;
}

} // namespace weir::fabric
