// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"

#include <cstddef>
#include <span>

namespace weir::slot {

/// Which ranks' data are folded, by which kernel (all ranks', or only the root's in a broadcast),
/// and by which kernel the result gets into the frames.
struct Fold {
  op::ReduceKernel kernel = nullptr;
  op::SpreadKernel spread = nullptr;
  std::uint16_t first = 0;
  std::uint16_t count = 0; // 0: all

  /// Copies bits unchanged, whatever their type: it makes no NaN canonical.
  static Fold copy_of(std::uint16_t root, op::ReduceKernel bitwise_or_of_bytes,
                      op::SpreadKernel spread) {
    return {bitwise_or_of_bytes, spread, root, 1};
  }
};

/// Folds `bytes` bytes of the payloads, in order, into `out` and back into every payload. It works
/// in blocks that fit the first-level cache with all ranks' data. So each block is written while
/// its cache lines are still there. `payloads` is changed: each pointer ends after its data. The
/// conditions are those of ReduceKernel.
void fold_to_all(const Fold& fold, std::byte* out, std::span<std::byte*> payloads,
                 std::size_t bytes);

} // namespace weir::slot
