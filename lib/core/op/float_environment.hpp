// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <xmmintrin.h>

namespace weir::op {

/// Sets the floating-point mode that kernels need (kernel.hpp) in a thread with any other mode:
/// round to nearest, keep subnormals, no traps. Restores the thread's MXCSR, with its sticky flags,
/// at the end.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() : owners_(_mm_getcsr()) { _mm_setcsr(kDefault); }

  ~DefaultFloatEnvironment() { _mm_setcsr(owners_); }

  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  static constexpr unsigned kDefault = 0x1f80; // Intel SDM volume 1, §10.2.3: MXCSR after reset

  unsigned owners_;
};

} // namespace weir::op
