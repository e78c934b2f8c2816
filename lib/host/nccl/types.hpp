// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/weir.h"

#include <cstddef>
#include <optional>

namespace weir::nccl {

struct DataType {
  weir_data_type type;
  std::size_t bytes; // of an element
};

/// By NCCL's number; nothing: one that Weir does not know.
std::optional<DataType> data_type_of(int nccls);
std::optional<weir_operation> operation_of(int nccls);

} // namespace weir::nccl
