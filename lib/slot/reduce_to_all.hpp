// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"

#include <cstddef>
#include <span>

namespace weir::slot {

/// Whose data are folded, and how: all ranks', or, in a broadcast, the root's alone.
struct Fold {
  op::ReduceKernel kernel = nullptr;
  std::uint16_t first = 0;
  std::uint16_t count = 0; // 0: all

  /// Bits as they are, whatever their type: no canonical NaN comes from this.
  static Fold copy_of(std::uint16_t root, op::ReduceKernel bitwise_or_of_bytes) {
    return {bitwise_or_of_bytes, root, 1};
  }
};

/// Folds `bytes` of the payloads, in order, into `out` and back into every payload. It goes by
/// blocks that fit the first-level cache with all ranks' data, so that a result is written where
/// its contribution has just been read, and the lines are not fetched again. `payloads` is used up:
/// each pointer ends past its data. The conditions are ReduceKernel's.
void reduce_to_all(const Fold& fold, std::byte* out, std::span<std::byte*> payloads,
                   std::size_t bytes);

} // namespace weir::slot
