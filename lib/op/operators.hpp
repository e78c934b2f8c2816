// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"

#include <array>
#include <cstdint>

namespace weir::op {

/// Whether a result depends on the order in which its inputs are folded. Sums and products of
/// floats are rounded at each step, and of equal zeros min and max keep the first one's sign.
enum class Order : std::uint8_t { never_matters, matters_for_floats };

/// What an operator is. A new one is a new row.
struct OperatorRow {
  Operation operation{};
  Order order{};

  /// The element that leaves any other as it is when it is folded before it: its bits, from the
  /// lowest on. Only for a type that the operation is for.
  std::uint64_t (*identity)(DataType type) = nullptr;

  /// nullptr where the type and the operation do not go together.
  ReduceKernel (*kernel)(DataType type, CpuLevel level) = nullptr;
};

/// By number of the operation.
extern const std::array<OperatorRow, kOperations> kOperatorRows;

/// Whether this is a type that sums are rounded in.
bool is_float(DataType type);

/// The operators at one CPU level: the kernel of every type and operation, nullptr where the two do
/// not go together.
class Operators {
 public:
  explicit Operators(CpuLevel level);

  ReduceKernel kernel(DataType type, Operation operation) const {
    return kernels_[static_cast<std::size_t>(type)][static_cast<std::size_t>(operation)];
  }

 private:
  std::array<std::array<ReduceKernel, kOperations>, kDataTypes> kernels_{};
};

} // namespace weir::op
