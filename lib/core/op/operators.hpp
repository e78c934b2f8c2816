// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"

#include <array>
#include <cstdint>

namespace weir::op {

/// Whether a result depends on the order of its inputs. Sums and products of floats are rounded at
/// each step. Min and max of equal zeros keep the sign of the first.
enum class Order : std::uint8_t { never_matters, matters_for_floats };

/// Describes an operator. A new operator is a new row of WEIR_OPERATIONS (weir/ina.hpp).
struct OperatorRow {
  Operation operation{};
  Order order{};

  /// The right-aligned bits of the element e with e op x = x for every x. Only for types that the
  /// operation supports.
  std::uint64_t (*identity)(DataType type) = nullptr;

  /// nullptr if the operation does not support the type.
  ReduceKernel (*kernel)(DataType type, CpuLevel level) = nullptr;
};

/// Indexed by the operation's number.
extern const std::array<OperatorRow, kOperations> kOperatorRows;

/// The operators at one CPU level: a kernel for each type and operation, nullptr if the operation
/// does not support the type.
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
