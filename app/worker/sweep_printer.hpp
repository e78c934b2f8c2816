// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "progress_bar.hpp"
#include "worker/sweep_report.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::app {

/// What a rank prints of its sweep. Wrong results of this rank go to stderr.
class SweepPrinter : public SweepWatcher {
 public:
  virtual void print_ending(std::span<const SweepRow> rows, const Sweep& sweep) = 0;
};

/// Rank 0's: the table, row by row, and progress on a terminal. The other ranks': a line at the
/// beginning and one at the end, which begin with the options' mark. `options` and `group` must
/// outlive it.
std::unique_ptr<SweepPrinter> make_printer(const SweepOptions& options, const host::Group& group);

SweepSetting setting_of(const host::Group& group);

} // namespace weir::app
