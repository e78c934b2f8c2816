// SPDX-License-Identifier: BSD-3-Clause
#include "worker/group_trees.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace weir::app {

std::vector<FoldTree> trees_in_use(const host::Group& group, const std::vector<FoldTree>& trees) {
  std::vector<std::uint16_t> leaders;
  for (std::uint16_t rank = 0; rank < group.world(); ++rank) {
    leaders.push_back(group.leader(rank));
  }
  if (group.algorithm() == host::Algorithm::ring) {
    return {FoldTree::flat(group.world()).with_leaders(leaders)};
  }
  if (group.algorithm() != host::Algorithm::in_switch) {
    return {FoldTree::flat(group.world())};
  }
  const std::vector<std::uint32_t> used = group.rings();
  const std::vector<std::uint32_t>& all = group.options().rings;
  assert(trees.size() >= all.size()); // of rings that may be offered, some are not
  std::vector<FoldTree> in_use;
  for (std::size_t ring = 0; ring < all.size(); ++ring) {
    if (std::ranges::find(used, all[ring]) != used.end()) {
      in_use.push_back(trees[ring].with_leaders(leaders));
    }
  }
  return in_use;
}

std::string_view hint_for(const std::vector<FoldTree>& trees) {
  return std::ranges::all_of(trees, &FoldTree::is_flat)
             ? "; where several switches add, floats are rounded level by level: give --tree"
             : "";
}

} // namespace weir::app
