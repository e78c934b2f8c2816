// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The time of a systolic array with stationary outputs: each cell computes one value of a matrix
/// product, one multiplication per cycle.

#include <cstdint>

namespace weir::figures {

/// (rows x depth) times (depth x columns).
struct MatrixProduct {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t depth = 0;
};

/// A product larger than the array is computed in folds, each as large as the array.
enum class Folds : std::uint8_t {
  /// A fold begins when the one before has left the array: 2 · side + side + depth - 2 cycles each
  /// (A. Samajdar et al., ISPASS 2020, equation 1).
  one_by_one,
  /// The operands of the next fold follow those of the last without a gap, as double buffers allow.
  /// A fold's results leave row by row, one row per cycle, which is a lower bound.
  back_to_back,
};

/// Cycles of one array of side x side cells. 0 for a product without values.
std::uint64_t cycles_of(const MatrixProduct& product, std::uint64_t side, Folds folds);

} // namespace weir::figures
