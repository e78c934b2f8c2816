// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Reduction kernels: the arithmetic of docs/protocol.md §2. There is one table for each
/// instruction-set level, with a kernel for each data type and operation. One level is chosen at
/// start.

#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::op {

/// Instruction sets that a kernel may use. Debian's DPDK flags fix the build to corei7, so each
/// higher level is compiled in a file of its own and chosen at run time.
enum class CpuLevel : std::uint8_t { baseline, avx2, avx512, avx512vbmi };
inline constexpr std::size_t kCpuLevels = 4;

std::string_view name_of(CpuLevel level);

/// The highest level this CPU and operating system support.
CpuLevel best_cpu_level();

/// Where a kernel writes its result besides `out`. No alignment is needed.
struct Copies {
  std::byte* const* to = nullptr;
  unsigned count = 0;
};

/// Folds inputs[0] .. inputs[count-1] in index order into `out`, and copies the result. f32 and
/// f64: the exact left fold without contraction. f16, bf16 and f8: in f32, rounded once to nearest
/// even at the end. Integers wrap. min and max propagate NaN. `bytes` is a multiple of the element
/// size; `count` >= 1. Pointers need no alignment. `out` overlaps no input and no copy. Copies do
/// not overlap one another; each may be in place of an input, and overlaps no other input. Elements
/// are little-endian.
///
/// The result depends only on the inputs, bit for bit, at every level and with every compiler (I8).
/// The thread's MXCSR must be the default one (round to nearest, keep subnormals).
/// - A NaN result is always the positive quiet NaN without payload, for any NaN inputs and for
///   count == 1: f32 7fc00000, f64 7ff8000000000000, f16 7e00, bf16 7fc0, f8 E4M3 7f, f8 E5M2 7e.
///   (Which of two NaNs an addition keeps depends on the order of its operands, which a compiler
///   may swap.)
/// - min and max: any NaN among the inputs makes the result NaN. Otherwise they are the left fold
///   of `v < acc ? v : acc` and `v > acc ? v : acc`. Of equals, such as -0 and +0, the first stays.
/// - Rounding past the largest finite value gives infinity of that sign. f8 E4M3 is OCP's, without
///   infinity (largest 448, NaN 7f and ff): it gives NaN, as OCP's non-saturating conversion does,
///   also when the f32 accumulator has overflowed.
using ReduceKernel = void (*)(std::byte* out, const std::byte* const* inputs, unsigned count,
                              std::size_t bytes, Copies copies);

/// The kernel for a type and an operation at one level; a level without its own uses that of the
/// next lower level. nullptr when is_reducible(type, operation) is false.
ReduceKernel find_kernel(DataType type, Operation operation, CpuLevel level);

/// Sums of blocks of 32 codes of f8 with a power of two as scale, as programs say them
/// (config/operators, mxfp8-*-sum).
enum class BlockSum : std::uint8_t { mxfp8_e4m3, mxfp8_e5m2 };
inline constexpr std::size_t kBlockSums = 2;
inline constexpr unsigned kMostBlockInputs = 256;

/// A kernel for one packet, which has bytes / 33 blocks: all codes, then all scales; what is left
/// of `out` becomes zero. Its bits are those of the program's loops, for each input. `count` is at
/// most kMostBlockInputs. nullptr: the level has none.
ReduceKernel find_block_sum(BlockSum sum, CpuLevel level);

/// Converts `elements` elements from one format to another, in order. No alignment is needed; the
/// ranges must not overlap.
using ConvertKernel = void (*)(std::byte* out, const std::byte* in, std::size_t elements);

/// Conversions for a fold that several hosts make together, in a format narrower than f32. The f32
/// accumulator travels between them and is rounded once, at the end.
struct Conversions {
  ConvertKernel to_f32 = nullptr;   // exact; a NaN stays a NaN
  ConvertKernel from_f32 = nullptr; // rounds, and makes NaNs canonical
};

/// Both for f16, bf16 and f8; neither for other types.
Conversions find_conversions(DataType type, CpuLevel level);

/// The slow and simple kernel, one element at a time. Tests compare all others with it. nullptr in
/// the same cases as find_kernel.
ReduceKernel reference_kernel(DataType type, Operation operation);

} // namespace weir::op
