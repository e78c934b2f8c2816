// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/region/region_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

/// What the ranks tell one another when they make a region.

namespace weir::host {

inline constexpr std::size_t kRegionNoteBytes = 512;
/// Of RegionAnswer.
inline constexpr std::size_t kRegionAnswerBytes = 8192;

/// What a rank tells all others: its end, or why it has none.
struct RegionNote {
  std::uint64_t bytes = 0;
  RegionOptions options;
  std::variant<RegionMember, Error> member;
};

/// kRegionNoteBytes of them. A text may be cut.
std::vector<std::uint8_t> encode(const RegionNote& note);

/// All members, by rank. Throws Error about the first rank that has no end, whose options or bytes
/// are not rank 0's (mismatch), or whose note cannot be read. kRegionNoteBytes of each.
std::vector<RegionMember> agreed_members(std::span<const std::uint8_t> notes);

/// What rank 0 tells the others: the region, or why there is none.
using RegionAnswer = std::variant<MadeRegion, Error>;

/// kRegionAnswerBytes of them.
std::vector<std::uint8_t> encode(const RegionAnswer& answer);

/// Of so many members and views. Throws the Error that it has, or one about rank 0 for bytes that
/// are no answer.
MadeRegion decode_region_answer(std::span<const std::uint8_t> bytes, std::size_t members,
                                std::size_t views);

} // namespace weir::host
