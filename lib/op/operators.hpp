// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"

#include <array>

namespace weir::op {

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
