// SPDX-License-Identifier: BSD-3-Clause
#include "weir/ina.hpp"

#include <array>

namespace weir {
namespace {

enum class Kind : std::uint8_t { integer, floating };
enum class Elements : std::uint8_t { integers, any_type };

struct TypeRow {
  std::string_view name;
  std::size_t bytes;
  Kind kind;
};

struct OperationRow {
  std::string_view name;
  Elements elements;
};

// Indexed by DataType.
constexpr std::array<TypeRow, kDataTypes> kTypes{{
#define X(type, bytes, kind, ...) {#type, bytes, Kind::kind},
    WEIR_DATA_TYPES(X)
#undef X
}};

// Indexed by Operation.
constexpr std::array<OperationRow, kOperations> kOperationRows{{
#define X(operation, name, elements, ...) {name, Elements::elements},
    WEIR_OPERATIONS(X)
#undef X
}};

template <typename Enum, typename Rows>
std::optional<Enum> find_named(const Rows& rows, std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

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
  return index < kOperationRows.size() ? kOperationRows[index].name : "unknown";
}

std::optional<DataType> data_type_named(std::string_view name) {
  return find_named<DataType>(kTypes, name);
}

std::optional<Operation> operation_named(std::string_view name) {
  return find_named<Operation>(kOperationRows, name);
}

bool is_reducible(DataType type, Operation operation) {
  const auto of_type = static_cast<std::size_t>(type);
  const auto of_operation = static_cast<std::size_t>(operation);
  if (of_type >= kTypes.size() || of_operation >= kOperationRows.size()) {
    return false;
  }
  return kTypes[of_type].kind == Kind::integer ||
         kOperationRows[of_operation].elements == Elements::any_type;
}

} // namespace weir
