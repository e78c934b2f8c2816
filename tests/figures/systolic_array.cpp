// SPDX-License-Identifier: BSD-3-Clause
#include "systolic_array.hpp"

#include "units.hpp"

#include <algorithm>

namespace weir::figures {
namespace {

std::uint64_t back_to_back(const MatrixProduct& product, std::uint64_t side) {
  const std::uint64_t rows_left = product.rows % side; // in the last fold of a column of folds
  const std::uint64_t full = product.rows / side * std::max(product.depth, side);
  const std::uint64_t last = rows_left == 0 ? 0 : std::max(product.depth, rows_left);
  // The corner that is farthest away begins last.
  const std::uint64_t skew = std::min(product.rows, side) + std::min(product.columns, side) - 2;
  return divided_up(product.columns, side) * (full + last) + skew;
}

} // namespace

std::uint64_t cycles_of(const MatrixProduct& product, std::uint64_t side, Folds folds) {
  if (product.rows == 0 || product.columns == 0) {
    return 0;
  }
  if (folds == Folds::back_to_back) {
    return back_to_back(product, side);
  }
  return divided_up(product.rows, side) * divided_up(product.columns, side) *
         (2 * side + side + product.depth - 2);
}

} // namespace weir::figures
