// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::op {

/// Which children of a ring take part in a step of a collective.
enum class Who : std::uint8_t { nobody, root, everybody };

/// Describes a collective (docs/protocol.md §2). A new collective is a new row.
struct CollectiveRow {
  Collective collective{};
  Who contributes{}; // whose data makes the result; if everybody's, an operator folds them
  Who completes{};   // whose packets a slot waits for
  Who receives{};    // who gets the result, each child on its own connection
};

inline constexpr std::array<CollectiveRow, kCollectives> kCollectiveRows{{
    {Collective::all_reduce, Who::everybody, Who::everybody, Who::everybody},
    {Collective::hello, Who::everybody, Who::everybody, Who::everybody},
    {Collective::broadcast, Who::root, Who::everybody, Who::everybody},
    {Collective::barrier, Who::nobody, Who::everybody, Who::everybody},
}};

static_assert(
    std::ranges::all_of(kCollectiveRows,
                        [](const CollectiveRow& row) {
                          return &row == &kCollectiveRows[static_cast<std::size_t>(row.collective)];
                        }),
    "a row stands at its collective's number");

/// `collective` is below kCollectives.
constexpr const CollectiveRow& row_of(Collective collective) {
  return kCollectiveRows[static_cast<std::size_t>(collective)];
}

/// For a stage that supports one value of a column only. A row with another value fails to compile
/// until the stage supports it.
constexpr bool all_collectives_have(Who CollectiveRow::*column, Who who) {
  return std::ranges::all_of(kCollectiveRows,
                             [&](const CollectiveRow& row) { return row.*column == who; });
}

} // namespace weir::op
