// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nccl_check/meeting.hpp"
#include "nccl_check/options.hpp"

#include <cstdint>

namespace weir::nccl_check {

/// What one rank does: has the plug-in connect with the others, sum, and tells what came of it on
/// standard output, if it is rank 0. Throws std::runtime_error: what did not work.
void check_rank(const Options& options, Place own, const host::Endpoint& meet);

} // namespace weir::nccl_check
