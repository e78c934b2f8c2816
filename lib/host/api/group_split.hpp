// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group_driver.hpp"
#include "host/api/group_opening.hpp"
#include "host/api/group_succession.hpp"
#include "host/base/group_options.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// Into which part of a group a rank goes.
struct SplitPlace {
  std::optional<std::int32_t> colour; // the part's; none: the rank goes into no part
  std::int32_t key = 0;               // its place there; equal ones in the order of the ranks
  std::vector<std::uint16_t> list;    // the part's ranks in their order; empty: colours decide
};

/// The place of `own` in the part that has these ranks of `world`. Throws std::invalid_argument for
/// a rank that is none, or that comes twice.
SplitPlace place_in(std::span<const std::uint16_t> ranks, std::uint16_t own, std::uint16_t world);

/// Fills `out` with every rank's `bytes` bytes, in rank order, by a call of the group that is
/// split. Throws Error.
using NoteExchange = std::function<void(const void* in, std::size_t bytes, void* out)>;

/// Forms the part of this rank: the ranks tell one another their places by one call of the group,
/// and those of a part meet where its first rank listens. The whole group calls it. `options` are
/// the part's, of which rank, world and how the ranks meet follow from the group. No driver: this
/// rank goes into no part. Throws std::invalid_argument, also on the other ranks of the part as an
/// Error, or Error; the group goes on unless the exchange failed.
Succession split(GroupDriver& whole, GroupOptions options, const SplitPlace& place,
                 const NoteExchange& exchange, const TransportOpening& open);

} // namespace weir::host
