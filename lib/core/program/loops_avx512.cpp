// SPDX-License-Identifier: BSD-3-Clause

/// The loops of fold programs for one CPU level (op/kernel.hpp).

#include "program/loops_impl.hpp"

namespace weir::program {

void run_avx512(const Step* steps, std::size_t count, Tile& tile) {
  run_steps(steps, count, tile);
}

} // namespace weir::program
