// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/frame_seal.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace weir::host {

/// Who goes on when a group shrinks, by original rank.
struct ShrinkMembership {
  std::vector<std::uint16_t> members; // ascending: a member's place is its new rank
  std::set<std::uint16_t> left_out;   // by this shrink or an earlier one, and perhaps alive
};

std::vector<std::uint8_t> encode(const ShrinkMembership& membership);

/// nullopt for bytes that are none.
std::optional<ShrinkMembership> decode_membership(ByteView bytes);

/// Who may go on. If all others are known to have ended: any two ranks. A rank that does not answer
/// may be alive, and go on with ranks that do not answer us. Then more than half of the history's
/// ranks are needed, or half of them with rank 0. Two such parts have a rank in common.
bool may_go_on(const ShrinkMembership& membership, std::uint16_t original_world);

} // namespace weir::host
