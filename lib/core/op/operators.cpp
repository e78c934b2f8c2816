// SPDX-License-Identifier: BSD-3-Clause
#include "op/operators.hpp"

namespace weir::op {
namespace {

/// The elements of a type that serve as identities, as right-aligned bits.
struct Landmarks {
  std::uint64_t zero;
  std::uint64_t one;
  std::uint64_t highest;
  std::uint64_t lowest;
};

constexpr std::array<Landmarks, kDataTypes> kLandmarks{{
#define X(type, bytes, kind, ...) {__VA_ARGS__},
    WEIR_DATA_TYPES(X)
#undef X
}};

const Landmarks& landmarks_of(DataType type) {
  return kLandmarks[static_cast<std::size_t>(type)];
}

// The identities that the rows name.
std::uint64_t zero(DataType type) {
  return landmarks_of(type).zero;
}

std::uint64_t one(DataType type) {
  return landmarks_of(type).one;
}

std::uint64_t highest(DataType type) {
  return landmarks_of(type).highest;
}

std::uint64_t lowest(DataType type) {
  return landmarks_of(type).lowest;
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

} // namespace

constinit const std::array<OperatorRow, kOperations> kOperatorRows{{
#define X(operation, name, elements, order, identity)                                              \
  {Operation::operation, Order::order, identity, kernel_of<Operation::operation>},
    WEIR_OPERATIONS(X)
#undef X
}};

Operators::Operators(CpuLevel level) {
  for (const OperatorRow& row : kOperatorRows) {
    for (std::size_t type = 0; type < kDataTypes; ++type) {
      kernels_[type][static_cast<std::size_t>(row.operation)] =
          row.kernel(static_cast<DataType>(type), level);
    }
  }
}

} // namespace weir::op
