// SPDX-License-Identifier: BSD-3-Clause

/// The kernels for AVX-512 F, BW, VL and DQ. Every CPU with these also has AVX2 and F16C.

#include "op/kernel_impl.hpp"

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512VL__) ||                   \
    !defined(__AVX512DQ__) || !defined(__F16C__)
#error "compile with -mavx2 -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq"
#endif

namespace weir::op {

constexpr KernelTable kAvx512Kernels = make_kernel_table();

} // namespace weir::op
