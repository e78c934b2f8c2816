// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/types.hpp"

#include <array>

namespace weir::nccl {
namespace {

// In the order of ncclDataType_t.
constexpr std::array kDataTypes{
    DataType{WEIR_I8, 1},   DataType{WEIR_U8, 1},     DataType{WEIR_I32, 4},
    DataType{WEIR_U32, 4},  DataType{WEIR_I64, 8},    DataType{WEIR_U64, 8},
    DataType{WEIR_F16, 2},  DataType{WEIR_F32, 4},    DataType{WEIR_F64, 8},
    DataType{WEIR_BF16, 2}, DataType{WEIR_F8E4M3, 1}, DataType{WEIR_F8E5M2, 1}};

// In that of ncclRedOp_t. An average is a sum by then: NCCL scales on the GPU.
constexpr std::array kOperations{WEIR_SUM, WEIR_PRODUCT, WEIR_MAX, WEIR_MIN};

template <typename Row, std::size_t kRows>
std::optional<Row> row_of(const std::array<Row, kRows>& rows, int number) {
  const auto index = static_cast<std::size_t>(number);
  return number >= 0 && index < kRows ? std::optional(rows[index]) : std::nullopt;
}

} // namespace

std::optional<DataType> data_type_of(int nccls) {
  return row_of(kDataTypes, nccls);
}

std::optional<weir_operation> operation_of(int nccls) {
  return row_of(kOperations, nccls);
}

} // namespace weir::nccl
