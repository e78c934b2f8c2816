// SPDX-License-Identifier: BSD-3-Clause

/// The loops of fold programs for one CPU level (op/kernel.hpp).

#include "program/loops_impl.hpp"

namespace weir::program {

constexpr Loops kAvx2Loops = {run_steps, fold_directly};

} // namespace weir::program
