// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A tree that was found, as its switches get it: depth first, with the ranks in the order of the
/// rings.

#include "placement/place.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::placement {

/// A switch of a tree with what is below it.
struct Branch {
  std::uint32_t lowest = UINT32_MAX;    // rank below it
  std::span<const std::uint32_t> ranks; // at the switch itself
  std::vector<SwitchIndex> below;
  SwitchIndex parent = kNone; // kNone: the root
  LinkId up = kNone;
};

struct TreeLayout {
  std::vector<TreeSwitch> switches;   // depth first, the root first
  std::vector<std::uint32_t> rank_at; // by position
};

/// `branches` are by switch. `position`, by rank, is what earlier trees have settled: branches are
/// visited in that order. Without, they are in the order of their lowest ranks.
TreeLayout lay_out(const Request& request, std::span<const Branch> branches, SwitchIndex root,
                   std::span<const std::uint32_t> position);

} // namespace weir::placement
