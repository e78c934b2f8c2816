// SPDX-License-Identifier: BSD-3-Clause
#include "program/loops.hpp"

namespace weir::program {

RunSteps find_loops(op::CpuLevel level) {
#if defined(__x86_64__)
  switch (level) {
  case op::CpuLevel::baseline:
    return run_baseline;
  case op::CpuLevel::avx2:
    return run_avx2;
  case op::CpuLevel::avx512:
  case op::CpuLevel::avx512vbmi:
    return run_avx512;
  }
#endif
  return run_baseline;
}

} // namespace weir::program
