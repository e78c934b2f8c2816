// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How long a systolic array with stationary outputs takes: each cell makes one value of a matrix
/// product, one multiplication a cycle.

#include <cstdint>

namespace weir::figures {

/// (rows x depth) times (depth x columns).
struct MatrixProduct {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t depth = 0;
};

/// A product larger than the array is made in folds, each as large as the array.
enum class Folds : std::uint8_t {
  /// A fold begins when the one before has left the array: 2 · side + side + depth - 2 cycles each
  /// (A. Samajdar et al., ISPASS 2020, equation 1).
  one_by_one,
  /// Operands of the next fold follow those of the last without a gap, as double buffers allow. A
  /// fold's results leave by rows, one a cycle, which bounds it from below.
  back_to_back,
};

/// Cycles of one array of side x side cells. 0 for a product without values.
std::uint64_t cycles_of(const MatrixProduct& product, std::uint64_t side, Folds folds);

} // namespace weir::figures
