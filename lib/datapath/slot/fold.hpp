// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::slot {

/// Which ranks' data are folded, and by which kernel: all ranks', or only the root's in a
/// broadcast.
struct Fold {
  op::ReduceKernel kernel = nullptr; // may be missing where there is no data
  std::uint16_t first = 0;
  std::uint16_t count = 0; // 0: all

  /// Copies bits unchanged, whatever their type: it makes no NaN canonical.
  static Fold copy_of(std::uint16_t root, op::ReduceKernel bitwise_or_of_bytes) {
    return {bitwise_or_of_bytes, root, 1};
  }

  /// Folds `bytes` bytes of the payloads into `out` and back into every payload.
  void operator()(std::byte* out, std::span<std::byte* const> payloads, std::size_t bytes) const {
    const auto all = static_cast<unsigned>(payloads.size());
    if (bytes != 0) {
      kernel(out, payloads.data() + first, count == 0 ? all : count, bytes, {payloads.data(), all});
    }
  }
};

} // namespace weir::slot
