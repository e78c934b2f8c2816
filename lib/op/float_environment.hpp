// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <xmmintrin.h>

namespace weir::op {

/// What the kernels need (kernel.hpp), in a thread whose arithmetic is somebody else's: to nearest,
/// subnormals kept, no traps. The owner's MXCSR, its sticky flags too, is back when this ends.
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
