// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_spec.hpp"

#include <cstdint>
#include <string>

namespace weir::ring {

bool is_parent(const RingSpec& ring, std::uint16_t sender);

/// What people call a child of the switch, or its parent, which comes after them: "3", "0-2" for a
/// switch below by its ranks, "parent".
std::string name_of(const RingSpec& ring, std::uint16_t sender);

/// The same in a sentence: "rank 3", "ranks 0-2", "the switch above".
std::string phrase_for(const RingSpec& ring, std::uint16_t sender);

/// The name of the switch that a child or the parent is; empty for a rank.
std::string switch_name_of(const RingSpec& ring, std::uint16_t sender);

} // namespace weir::ring
