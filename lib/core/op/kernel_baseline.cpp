// SPDX-License-Identifier: BSD-3-Clause

/// The kernels for the CPU that the whole build requires (on x86: corei7, as for Debian's DPDK;
/// SSE4.2 at most).

#include "op/kernel_impl.hpp"

#if defined(__AVX__)
#error "the baseline kernels must not be compiled with AVX: they run where it is missing"
#endif

namespace weir::op {

constexpr KernelTable kBaselineKernels = make_kernel_table();

} // namespace weir::op
