// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"
#include "program/digest.hpp"
#include "program/trial.hpp"

#include <cstddef>
#include <vector>

namespace weir::program {

/// What stands for a program.
struct StandIn {
  op::ReduceKernel kernel = nullptr; // nullptr: its loops fold
  bool is_wrong = false;             // there is one, but it gave other bits in the trial
};

/// The kernel of lib/core/op that is known to have this digest, if the level has one.
op::ReduceKernel known_kernel(const Digest& digest, op::CpuLevel level);

/// A kernel after its trial: it must give the loops' results. kernel nullptr: there is none.
StandIn tried(op::ReduceKernel kernel, const TrialData& data,
              const std::vector<std::byte>& results);

} // namespace weir::program
