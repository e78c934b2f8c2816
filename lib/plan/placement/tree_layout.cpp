// SPDX-License-Identifier: BSD-3-Clause
#include "placement/tree_layout.hpp"

#include <algorithm>
#include <utility>

namespace weir::placement {
namespace {

class DepthFirst {
 public:
  DepthFirst(const Request& request, std::span<const Branch> branches,
             std::span<const std::uint32_t> position)
      : request_(request), branches_(branches), position_(position) {}

  TreeChild visit(SwitchIndex at) {
    const Branch& branch = branches_[at];
    const std::size_t place = made_.switches.size();
    made_.switches.emplace_back();
    TreeSwitch part{
        .at = at, .parent = branch.parent, .up = branch.up, .first = next(), .children = {}};
    for (const Item& item : items_of(branch)) {
      if (item.below == kNone) {
        add_ranks(branch, part);
      } else {
        part.children.push_back(visit(item.below));
      }
    }
    part.count = next() - part.first;
    const TreeChild child{.below = at,
                          .down = branch.up == kNone ? kNone : Topology::reverse_of(branch.up),
                          .first = part.first,
                          .count = part.count};
    made_.switches[place] = std::move(part);
    return child;
  }

  TreeLayout take() { return std::move(made_); }

 private:
  struct Item {
    std::uint32_t key;
    SwitchIndex below; // kNone: the switch's own ranks
  };

  std::uint32_t next() const { return static_cast<std::uint32_t>(made_.rank_at.size()); }

  std::uint32_t key_of(std::uint32_t lowest) const {
    return position_.empty() ? lowest : position_[lowest];
  }

  std::vector<Item> items_of(const Branch& branch) const {
    std::vector<Item> items;
    if (!branch.ranks.empty()) {
      items.push_back({key_of(branch.ranks.front()), kNone});
    }
    for (const SwitchIndex below : branch.below) {
      items.push_back({key_of(branches_[below].lowest), below});
    }
    std::ranges::sort(items, {}, &Item::key);
    return items;
  }

  void add_ranks(const Branch& branch, TreeSwitch& part) {
    for (const std::uint32_t rank : branch.ranks) {
      part.children.push_back(
          {.below = kNone, .down = request_.seats[rank].down, .first = next(), .count = 1});
      made_.rank_at.push_back(rank);
    }
  }

  const Request& request_;
  std::span<const Branch> branches_;
  std::span<const std::uint32_t> position_;
  TreeLayout made_;
};

} // namespace

TreeLayout lay_out(const Request& request, std::span<const Branch> branches, SwitchIndex root,
                   std::span<const std::uint32_t> position) {
  DepthFirst layout(request, branches, position);
  layout.visit(root);
  return layout.take();
}

} // namespace weir::placement
