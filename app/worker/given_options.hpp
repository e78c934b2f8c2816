// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/group_options.hpp"
#include "option_table.hpp"
#include "worker/call_buffers.hpp"
#include "worker/call_choice.hpp"
#include "worker/fold_tree.hpp"
#include "worker/rank_calls.hpp"
#include "worker/single_job.hpp"
#include "worker/size_range.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

/// What a command line says, each option by itself.
struct GivenOptions {
  host::GroupOptions group;
  std::string devargs;
  std::string json;
  std::uint16_t local_ranks = 1;
  Registration registration = Registration::tensors;
  CallChoice choice;
  std::vector<FoldTree> trees;       // in the order given
  std::vector<Placement> placements; // in the order given

  // A single job.
  std::uint64_t bytes = std::uint64_t{64} << 20;
  std::uint32_t repetitions = 1;
  double density = 0.01;
  std::uint16_t block = 1;
  Verification verification = Verification::every_element;
  Progress progress = Progress::quiet;

  // A sweep.
  SizeRange sizes;
  std::uint32_t warm_ups = 5;
  std::uint32_t iterations = 20;
  std::uint32_t checked = 1;
  Waiting waiting = Waiting::sleep;
};

/// The option that makes a sweep of it, and who needs it or does not go with it.
inline constexpr std::string_view kSweepOption = "begin";
inline constexpr std::array<std::string_view, 7> kOnlyInSweeps{
    "end", "factor", "increment", "warm-up", "iterations", "check", "spin"};
inline constexpr std::array<std::string_view, 7> kNotInSweeps{
    "size", "repeat", "verify", "no-verify", "progress", "density", "block"};

inline constexpr std::array<std::string_view, 2> kOnlyIfSparse{"density", "block"};

/// Options that write to `given`, which must outlive them.
std::vector<Option> option_rows(GivenOptions& given);

} // namespace weir::app
