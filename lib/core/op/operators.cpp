// SPDX-License-Identifier: BSD-3-Clause
#include "op/operators.hpp"

namespace weir::op {
namespace {

/// The elements of a type that serve as identities, as right-aligned bits.
struct Landmarks {
  std::uint64_t zero;    // floats: -0, because +0 would turn -0 into +0
  std::uint64_t one;     //
  std::uint64_t highest; // infinity, or the largest number of a type without it
  std::uint64_t lowest;
};

constexpr std::array<Landmarks, kDataTypes> kLandmarks{{
    {0x80000000, 0x3f800000, 0x7f800000, 0xff800000},                                 // f32
    {0, 1, 0x7fffffff, 0x80000000},                                                   // i32
    {0x8000, 0x3c00, 0x7c00, 0xfc00},                                                 // f16
    {0x8000, 0x3f80, 0x7f80, 0xff80},                                                 // bf16
    {0x8000000000000000, 0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000}, // f64
    {0, 1, 0x7f, 0x80},                                                               // i8
    {0, 1, 0xff, 0},                                                                  // u8
    {0, 1, 0x7fff, 0x8000},                                                           // i16
    {0, 1, 0xffff, 0},                                                                // u16
    {0, 1, 0xffffffff, 0},                                                            // u32
    {0, 1, 0x7fffffffffffffff, 0x8000000000000000},                                   // i64
    {0, 1, 0xffffffffffffffff, 0},                                                    // u64
    {0x80, 0x38, 0x7e, 0xfe}, // f8 E4M3: no infinity, so +-448
    {0x80, 0x3c, 0x7c, 0xfc}, // f8 E5M2
}};

template <std::uint64_t Landmarks::*landmark>
std::uint64_t landmark_of(DataType type) {
  return kLandmarks[static_cast<std::size_t>(type)].*landmark;
}

std::uint64_t no_bits(DataType /*type*/) {
  return 0;
}

std::uint64_t all_bits(DataType /*type*/) {
  return ~std::uint64_t{0};
}

template <Operation operation>
ReduceKernel kernel_of(DataType type, CpuLevel level) {
  return find_kernel(type, operation, level);
}

template <Operation operation>
constexpr OperatorRow row(Order order, std::uint64_t (*identity)(DataType)) {
  return {operation, order, identity, kernel_of<operation>};
}

} // namespace

constinit const std::array<OperatorRow, kOperations> kOperatorRows{
    row<Operation::sum>(Order::matters_for_floats, landmark_of<&Landmarks::zero>),
    row<Operation::min>(Order::matters_for_floats, landmark_of<&Landmarks::highest>),
    row<Operation::max>(Order::matters_for_floats, landmark_of<&Landmarks::lowest>),
    row<Operation::product>(Order::matters_for_floats, landmark_of<&Landmarks::one>),
    row<Operation::bitwise_and>(Order::never_matters, all_bits),
    row<Operation::bitwise_or>(Order::never_matters, no_bits),
    row<Operation::bitwise_xor>(Order::never_matters, no_bits),
};

Operators::Operators(CpuLevel level) {
  for (const OperatorRow& row : kOperatorRows) {
    for (std::size_t type = 0; type < kDataTypes; ++type) {
      kernels_[type][static_cast<std::size_t>(row.operation)] =
          row.kernel(static_cast<DataType>(type), level);
    }
  }
}

} // namespace weir::op
