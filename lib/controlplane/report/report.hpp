// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Answers as tables. The prompt's text, its `json`, the files of weir-replay and the telemetry
/// socket all print the same tables.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::report {

using Cell = std::variant<std::uint64_t, double, std::string>;

struct Column {
  std::string_view key;     // in JSON and telemetry
  std::string_view heading; // in text
};

/// What all tables of one kind have in common.
struct TableShape {
  std::string_view name; // lower case, digits and _; the key in JSON, the title in text
  std::span<const Column> columns;
  std::string_view note; // a sentence under the table in text; may be empty
};

struct Table {
  explicit Table(const TableShape& of) : shape(&of), note(of.note) {}

  const TableShape* shape;
  std::vector<std::vector<Cell>> rows;
  std::string note; // the shape's, unless this table says more
};

using Report = std::vector<Table>;

/// Tables with a title and a frame; numbers are right-aligned. An empty table says "none".
std::string to_text(const Report& report);

/// {"name": [{"key": value, …}, …], …}
std::string to_json(const Report& report);

} // namespace weir::report
