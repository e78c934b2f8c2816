// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "agg/kernel.hpp"

#include <cstddef>
#include <span>

namespace weir::agg {

/// Folds `bytes` of each payload, in order, into `out` and back into every payload. It goes by
/// blocks that fit the first-level cache with all ranks' data, so that a result is written where
/// its contribution has just been read, and the lines are not fetched again. `payloads` is used up:
/// each pointer ends past its data. The conditions are ReduceKernel's.
void reduce_to_all(ReduceKernel kernel, std::byte* out, std::span<std::byte*> payloads,
                   std::size_t bytes);

} // namespace weir::agg
