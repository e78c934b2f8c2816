// SPDX-License-Identifier: BSD-3-Clause
#include "weir/ina.hpp"

#include <array>

namespace weir {
namespace {

struct TypeRow {
  std::string_view name;
  std::size_t bytes;
  bool floating;
};

// Indexed by DataType.
constexpr std::array<TypeRow, kDataTypes> kTypes{{
    {"f32", 4, true},
    {"i32", 4, false},
    {"f16", 2, true},
    {"bf16", 2, true},
    {"f64", 8, true},
    {"i8", 1, false},
    {"u8", 1, false},
    {"i16", 2, false},
    {"u16", 2, false},
    {"u32", 4, false},
    {"i64", 8, false},
    {"u64", 8, false},
    {"f8e4m3", 1, true},
    {"f8e5m2", 1, true},
}};

// Indexed by Operation.
constexpr std::array<std::string_view, kOperations> kOperationNames{"sum", "min", "max", "product",
                                                                    "and", "or",  "xor"};

} // namespace

std::size_t element_size(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kTypes.size() ? kTypes[index].bytes : 0;
}

std::string_view name_of(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kTypes.size() ? kTypes[index].name : "unknown";
}

std::string_view name_of(Operation operation) {
  const auto index = static_cast<std::size_t>(operation);
  return index < kOperationNames.size() ? kOperationNames[index] : "unknown";
}

std::optional<DataType> data_type_named(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) {
      return static_cast<DataType>(i);
    }
  }
  return std::nullopt;
}

std::optional<Operation> operation_named(std::string_view name) {
  for (std::size_t i = 0; i < kOperationNames.size(); ++i) {
    if (kOperationNames[i] == name) {
      return static_cast<Operation>(i);
    }
  }
  return std::nullopt;
}

bool is_reducible(DataType type, Operation operation) {
  const auto index = static_cast<std::size_t>(type);
  if (index >= kTypes.size() || static_cast<std::size_t>(operation) >= kOperations) {
    return false;
  }
  return !kTypes[index].floating || operation < Operation::bitwise_and;
}

} // namespace weir
