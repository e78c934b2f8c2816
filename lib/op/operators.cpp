// SPDX-License-Identifier: BSD-3-Clause
#include "op/operators.hpp"

namespace weir::op {

Operators::Operators(CpuLevel level) {
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    for (std::size_t operation = 0; operation < kOperations; ++operation) {
      kernels_[type][operation] =
          find_kernel(static_cast<DataType>(type), static_cast<Operation>(operation), level);
    }
  }
}

} // namespace weir::op
