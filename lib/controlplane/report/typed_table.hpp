// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Tables that know how a row becomes cells: a column is its key, its heading and a function of a
/// row, in one place.

#include "report/report.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir::report {

template <typename Row>
struct TypedColumn {
  std::string_view key;
  std::string_view heading;
  Cell (*cell)(const Row& row);
};

/// Where there is no value.
inline constexpr std::string_view kNone = "-";

template <typename Value>
Cell to_cell(const Value& value) {
  if constexpr (std::is_integral_v<Value>) {
    return static_cast<std::uint64_t>(value);
  } else if constexpr (std::is_same_v<Value, Cell> || std::is_same_v<Value, double>) {
    return value;
  } else {
    return std::string(value);
  }
}

template <typename Function, typename Result, typename Row>
Row row_of(Result (Function::*)(const Row&) const);

/// `cell` is a lambda without captures: it takes a row, and returns a number, a text or a Cell.
template <typename Function>
constexpr auto column(std::string_view key, std::string_view heading, Function /*cell*/) {
  using Row = decltype(row_of(&Function::operator()));
  return TypedColumn<Row>{key, heading, [](const Row& row) { return to_cell(Function{}(row)); }};
}

/// A shape, and how its rows are made of a Row each.
template <typename Row, std::size_t kColumns>
class TableOf : public TableShape {
 public:
  template <typename... Columns>
  constexpr TableOf(std::string_view its_name, std::string_view its_note, Columns... typed)
      : TableShape{its_name, {}, its_note}, plain_{Column{typed.key, typed.heading}...},
        cells_{typed.cell...} {
    columns = plain_;
  }

  // The shape has the address of a member.
  TableOf(const TableOf&) = delete;
  TableOf& operator=(const TableOf&) = delete;

  void add(Table& table, const Row& row) const {
    auto& cells = table.rows.emplace_back();
    for (const auto cell : cells_) {
      cells.push_back(cell(row));
    }
  }

  Table with(const Row& row) const {
    Table table(*this);
    add(table, row);
    return table;
  }

  template <typename Rows>
  Table with_all(const Rows& rows) const {
    Table table(*this);
    for (const Row& row : rows) {
      add(table, row);
    }
    return table;
  }

 private:
  std::array<Column, kColumns> plain_;
  std::array<Cell (*)(const Row&), kColumns> cells_;
};

template <typename Row, typename... More>
TableOf(std::string_view, std::string_view, TypedColumn<Row>, More...)
    -> TableOf<Row, 1 + sizeof...(More)>;

} // namespace weir::report
