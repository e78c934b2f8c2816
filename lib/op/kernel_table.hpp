// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The tables that the levels' translation units export. Data, not functions: nothing compiled for
/// a level runs before a CPU that supports it has been seen.

#include "op/kernel.hpp"

namespace weir::op {

/// Indexed by DataType, and by Operation; nullptr where the pair has no meaning.
struct KernelTable {
  ReduceKernel of[kDataTypes][kOperations];
  Conversions conversions[kDataTypes];
};

extern const KernelTable kBaselineKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
extern const KernelTable kAvx512VbmiKernels;
#endif

} // namespace weir::op
