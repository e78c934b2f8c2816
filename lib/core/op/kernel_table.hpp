// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The tables that the levels' translation units export. These are data, not functions, so no code
/// of a level runs before the CPU is known to support it.

#include "op/kernel.hpp"

namespace weir::op {

struct KernelTable {
  ReduceKernel of[kDataTypes][kOperations]; // nullptr for a pair that has no meaning
  Conversions conversions[kDataTypes];
  ReduceKernel block_sums[kBlockSums]; // nullptr: the level has none
};

extern const KernelTable kBaselineKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
extern const KernelTable kAvx512VbmiKernels;
#endif

} // namespace weir::op
