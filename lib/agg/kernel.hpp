// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Reduction kernels: the arithmetic of docs/protocol.md §2 and nothing else. One table row per
/// data type and operation, one column per instruction-set level, chosen once at start.

#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::agg {

/// Instruction sets a kernel may assume. Debian's DPDK flags pin the build to corei7, so every
/// level above it is compiled apart and chosen at run time.
enum class CpuLevel : std::uint8_t { baseline, avx2, avx512 };
inline constexpr std::size_t kCpuLevels = 3;

std::string_view name_of(CpuLevel level);

/// The highest level this CPU and operating system support.
CpuLevel best_cpu_level();

/// Folds inputs[0] .. inputs[count-1] in index order into `out`: f32/f64 as the exact left fold
/// without contraction; f16, bf16 and f8 in f32 with one rounding to nearest even at the end;
/// integers wrap; min and max propagate NaN. `bytes` is a multiple of the element size; `count`
/// >= 1. No pointer need be aligned; `out` overlaps no input. Little-endian elements.
using ReduceKernel = void (*)(std::byte* out, const std::byte* const* inputs, unsigned count,
                              std::size_t bytes);

/// The kernel for one pair at one level (a level without code of its own gives the next lower
/// one's); nullptr when is_reducible(type, operation) is false.
ReduceKernel find_kernel(DataType type, Operation operation, CpuLevel level);

/// The slow, obvious element-at-a-time kernel that every other is held against; nullptr as
/// find_kernel.
ReduceKernel reference_kernel(DataType type, Operation operation);

} // namespace weir::agg
