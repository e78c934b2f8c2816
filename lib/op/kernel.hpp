// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Reduction kernels: the arithmetic of docs/protocol.md §2 and nothing else. One table row per
/// data type and operation, one column per instruction-set level, chosen once at start.

#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::op {

/// Instruction sets a kernel may assume. Debian's DPDK flags pin the build to corei7, so every
/// level above it is compiled apart and chosen at run time.
enum class CpuLevel : std::uint8_t { baseline, avx2, avx512, avx512vbmi };
inline constexpr std::size_t kCpuLevels = 4;

std::string_view name_of(CpuLevel level);

/// The highest level this CPU and operating system support.
CpuLevel best_cpu_level();

/// Folds inputs[0] .. inputs[count-1] in index order into `out`: f32/f64 as the exact left fold
/// without contraction; f16, bf16 and f8 in f32 with one rounding to nearest even at the end;
/// integers wrap; min and max propagate NaN. `bytes` is a multiple of the element size; `count`
/// >= 1. No pointer need be aligned; `out` overlaps no input. Little-endian elements.
///
/// The result depends on the inputs alone, bit for bit, at every level and with every compiler
/// (I8), provided the thread's MXCSR is the default one (to nearest, subnormals kept):
/// - A result that is NaN is the positive quiet NaN without payload, whatever NaNs came in, also
///   for count == 1: f32 7fc00000, f64 7ff8000000000000, f16 7e00, bf16 7fc0, f8 E4M3 7f, f8 E5M2
///   7e. (Which of two NaNs an addition keeps depends on the order of its operands, which a
///   compiler may swap.)
/// - min and max: any NaN among the inputs makes the result NaN; otherwise the left fold of
///   `v < acc ? v : acc` and `v > acc ? v : acc`, so of equals, such as -0 and +0, the first stays.
/// - Rounding past the largest finite value gives infinity of that sign. f8 E4M3 is OCP's, without
///   infinity (largest 448, NaN 7f and ff): there it gives NaN, as OCP's non-saturating conversion,
///   also when the f32 accumulator itself had overflowed.
using ReduceKernel = void (*)(std::byte* out, const std::byte* const* inputs, unsigned count,
                              std::size_t bytes);

/// The kernel for one pair at one level (a level without code of its own gives the next lower
/// one's); nullptr when is_reducible(type, operation) is false.
ReduceKernel find_kernel(DataType type, Operation operation, CpuLevel level);

/// `elements` of one format to as many of another, in order. Nothing need be aligned; no overlap.
using ConvertKernel = void (*)(std::byte* out, const std::byte* in, std::size_t elements);

/// What a fold that is done in several places needs for a format narrower than f32: the f32
/// accumulator may travel between them and be rounded once, at the end.
struct Conversions {
  ConvertKernel to_f32 = nullptr;   // exact; a NaN stays some NaN
  ConvertKernel from_f32 = nullptr; // rounds, and makes NaNs canonical, as a ReduceKernel's end
};

/// Both for f16, bf16 and f8, neither for any other type.
Conversions find_conversions(DataType type, CpuLevel level);

/// The slow, obvious element-at-a-time kernel that every other is held against; nullptr as
/// find_kernel.
ReduceKernel reference_kernel(DataType type, Operation operation);

} // namespace weir::op
