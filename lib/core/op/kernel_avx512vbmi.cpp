// SPDX-License-Identifier: BSD-3-Clause

/// The kernels for AVX-512 with VBMI. f8 uses its table lookups of bytes.

#include "op/kernel_impl.hpp"

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512VL__) ||                   \
    !defined(__AVX512DQ__) || !defined(__AVX512VBMI__) || !defined(__F16C__)
#error "compile with -mavx2 -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi"
#endif

namespace weir::op {

constexpr KernelTable kAvx512VbmiKernels = make_kernel_table();

} // namespace weir::op
