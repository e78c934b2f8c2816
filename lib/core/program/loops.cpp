// SPDX-License-Identifier: BSD-3-Clause
#include "program/loops.hpp"

namespace weir::program {

Loops find_loops(op::CpuLevel level) {
#if defined(__x86_64__)
  switch (level) {
  case op::CpuLevel::baseline:
    return kBaselineLoops;
  case op::CpuLevel::avx2:
    return kAvx2Loops;
  case op::CpuLevel::avx512:
  case op::CpuLevel::avx512vbmi:
    return kAvx512Loops;
  }
#endif
  return kBaselineLoops;
}

bool is_direct(const Code& code) {
  if (!code.is_fused || code.start.size() != 1 || code.fold.size() != 1) {
    return false;
  }
  const Step& start = code.start.front();
  const Step& fold = code.fold.front();
  const bool is_known = fold.op == Op::add || fold.op == Op::min || fold.op == Op::max;
  return is_known && start.op == Op::copy && start.a == kDirect && start.to == fold.to &&
         fold.a == fold.to && fold.b == kDirect;
}

bool is_direct_to_end(const Code& code) {
  if (!is_direct(code) || code.finish.size() != 1) {
    return false;
  }
  const Step& end = code.finish.front();
  return end.op == Op::store && end.a == code.fold.front().to &&
         static_cast<std::size_t>(end.format) == static_cast<std::size_t>(end.lane);
}

} // namespace weir::program
