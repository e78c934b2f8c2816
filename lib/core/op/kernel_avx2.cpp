// SPDX-License-Identifier: BSD-3-Clause

/// The kernels for AVX2 with F16C.

#include "op/kernel_impl.hpp"

#if !defined(__AVX2__) || !defined(__F16C__) || defined(__FMA__)
#error "compile with -mavx2 -mf16c and without -mfma"
#endif

namespace weir::op {

constexpr KernelTable kAvx2Kernels = make_kernel_table();

} // namespace weir::op
