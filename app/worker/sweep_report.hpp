// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A sweep as nccl-tests print theirs: the same columns in the same order, with latencies behind
/// them. Lines that begin with # are no rows.

#include "worker/sweep.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::app {

/// What a sweep ran on.
struct SweepSetting {
  host::Place place;
  std::uint32_t epoch = 0;
  std::string algorithm;            // "switch" or "ring"
  std::string reason;               // why not "switch"
  std::vector<std::uint32_t> rings; // that carry the calls
  std::string missing_rings;        // why others do not
};

/// Before all rows.
std::string sweep_heading(const SweepSetting& setting, const SweepOptions& options);
/// Before the rows of each collective.
std::string table_heading(host::CallKind kind, std::span<const Placement> placements);
std::string table_row(const SweepRow& row, std::span<const Placement> placements,
                      std::uint16_t world);
/// After all rows.
std::string sweep_ending(std::span<const SweepRow> rows, std::uint16_t world);

std::string sweep_json(const SweepSetting& setting, const SweepOptions& options,
                       std::span<const SweepRow> rows,
                       const std::optional<std::uint64_t>& retransmissions);

/// Wrong elements of all rows on all ranks. None: nothing was checked.
std::optional<std::uint64_t> wrong_elements_of(std::span<const SweepRow> rows);

/// "8.25", "123.4", "56789": microseconds with about four digits.
std::string microseconds_text(double nanoseconds);

} // namespace weir::app
