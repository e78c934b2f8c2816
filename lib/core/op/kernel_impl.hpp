// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The fast kernels, written once. Each kernel_<level>.cpp includes this file with its own compiler
/// flags. These decide the vector width and which conversions the hardware does.
///
/// Everything is in an unnamed namespace, and no function of the standard library is called. The
/// linker would merge inline functions of two levels that share a name, and the baseline might get
/// the copy for AVX-512.
///
/// In order from the vectors to the table of kernels: kernel_vectors, kernel_folds, kernel_codecs,
/// kernel_narrow, kernel_walk, kernel_blocks, kernel_convert.

#include "op/kernel_blocks.hpp"
#include "op/kernel_convert.hpp"
#include "op/kernel_table.hpp"
#include "op/kernel_walk.hpp"

#include <cstdint>
#include <type_traits>

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): the file's comment says why

constexpr ReduceKernel& entry(KernelTable& table, DataType type, Operation operation) {
  return table.of[static_cast<std::size_t>(type)][static_cast<std::size_t>(operation)];
}

template <typename Codec>
constexpr void add_order(KernelTable& table, DataType type) {
  entry(table, type, Operation::min) = reduce<Codec, Minimum>;
  entry(table, type, Operation::max) = reduce<Codec, Maximum>;
}

/// Products use `Arithmetic`, sums `Addition`, minima and maxima `Order`.
template <typename Arithmetic, typename Order = Arithmetic, typename Addition = Arithmetic>
constexpr void add_float(KernelTable& table, DataType type) {
  entry(table, type, Operation::sum) = reduce<Addition, Sum>;
  entry(table, type, Operation::product) = reduce<Arithmetic, Product>;
  add_order<Order>(table, type);
}

/// Sums and products of signed integers use unsigned ones, whose overflow is defined.
template <typename Integer>
constexpr void add_integer(KernelTable& table, DataType type) {
  using Bits = Plain<std::uint64_t>; // bitwise operations need no element size
  using Unsigned = Plain<std::make_unsigned_t<Integer>>;
  using Factors = std::conditional_t<sizeof(Integer) == 1, BytePairs, Unsigned>;
  entry(table, type, Operation::sum) = reduce<Unsigned, Sum>;
  entry(table, type, Operation::product) = reduce<Factors, Product>;
  add_order<Plain<Integer>>(table, type);
  entry(table, type, Operation::bitwise_and) = reduce<Bits, And>;
  entry(table, type, Operation::bitwise_or) = reduce<Bits, Or>;
  entry(table, type, Operation::bitwise_xor) = reduce<Bits, Xor>;
}

template <typename Format, typename Code>
constexpr void add_conversions(KernelTable& table, DataType type) {
  table.conversions[static_cast<std::size_t>(type)] = {convert<ToF32<Format, Code>>,
                                                       convert<FromF32<Format, Code>>};
}

constexpr KernelTable make_kernel_table() {
  KernelTable table = {};
  add_float<Plain<float>>(table, DataType::f32);
  add_float<Plain<double>>(table, DataType::f64);
  add_float<Float16, Float16InOrder>(table, DataType::f16);
  add_float<Bfloat16, Bfloat16InOrder>(table, DataType::bf16);
  add_float<Float8<E4m3>, E4m3InOrder, Float8Sum<E4m3>>(table, DataType::f8e4m3);
  add_float<Float8<E5m2>, E5m2InOrder, Float8Sum<E5m2>>(table, DataType::f8e5m2);
  add_conversions<NarrowFormat<5, 10, Specials::ieee>, std::uint16_t>(table, DataType::f16);
  add_conversions<NarrowFormat<8, 7, Specials::ieee>, std::uint16_t>(table, DataType::bf16);
  add_conversions<E4m3, std::uint8_t>(table, DataType::f8e4m3);
  add_conversions<E5m2, std::uint8_t>(table, DataType::f8e5m2);
  add_integer<std::int8_t>(table, DataType::i8);
  add_integer<std::uint8_t>(table, DataType::u8);
  add_integer<std::int16_t>(table, DataType::i16);
  add_integer<std::uint16_t>(table, DataType::u16);
  add_integer<std::int32_t>(table, DataType::i32);
  add_integer<std::uint32_t>(table, DataType::u32);
  add_integer<std::int64_t>(table, DataType::i64);
  add_integer<std::uint64_t>(table, DataType::u64);
  for (std::size_t i = 0; i < kBlockSums; ++i) {
    table.block_sums[i] = kBlockSumKernels[i];
  }
  return table;
}

} // namespace

} // namespace weir::op
