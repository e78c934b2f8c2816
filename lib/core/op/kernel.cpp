// SPDX-License-Identifier: BSD-3-Clause

#include "op/kernel.hpp"

#include "op/kernel_table.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weir::op {

namespace {

#if defined(__x86_64__)

/// Asks CPUID, because not every compiler's __builtin_cpu_supports knows the name. F16C needs the
/// registers of AVX; the builtin has checked that the operating system supports these.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool has_avx2_level() {
  return __builtin_cpu_supports("avx2") != 0 && has_f16c();
}

bool has_avx512_level() {
  return has_avx2_level() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0;
}

const KernelTable& table_of(CpuLevel level) {
  switch (level) {
  case CpuLevel::baseline:
    return kBaselineKernels;
  case CpuLevel::avx2:
    return kAvx2Kernels;
  case CpuLevel::avx512:
    return kAvx512Kernels;
  case CpuLevel::avx512vbmi:
    return kAvx512VbmiKernels;
  }
  return kBaselineKernels;
}

#else

const KernelTable& table_of(CpuLevel /*level*/) {
  return kBaselineKernels;
}

#endif

} // namespace

std::string_view name_of(CpuLevel level) {
  switch (level) {
  case CpuLevel::baseline:
    return "baseline";
  case CpuLevel::avx2:
    return "avx2";
  case CpuLevel::avx512:
    return "avx512";
  case CpuLevel::avx512vbmi:
    return "avx512vbmi";
  }
  return "unknown";
}

CpuLevel best_cpu_level() {
#if defined(__x86_64__)
  if (has_avx512_level()) {
    return __builtin_cpu_supports("avx512vbmi") != 0 ? CpuLevel::avx512vbmi : CpuLevel::avx512;
  }
  if (has_avx2_level()) {
    return CpuLevel::avx2;
  }
#endif
  return CpuLevel::baseline;
}

ReduceKernel find_kernel(DataType type, Operation operation, CpuLevel level) {
  if (!is_reducible(type, operation)) {
    return nullptr;
  }
  return table_of(level).of[static_cast<std::size_t>(type)][static_cast<std::size_t>(operation)];
}

ReduceKernel find_block_sum(BlockSum sum, CpuLevel level) {
  return table_of(level).block_sums[static_cast<std::size_t>(sum)];
}

Conversions find_conversions(DataType type, CpuLevel level) {
  const auto index = static_cast<std::size_t>(type);
  return index < kDataTypes ? table_of(level).conversions[index] : Conversions{};
}

} // namespace weir::op
