// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Answers as tables. The prompt's text, its `json`, the files of weir-replay and the telemetry
/// socket all print the same tables.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::report {

using Cell = std::variant<std::uint64_t, double, std::string>;

struct Column {
  std::string key;     // in JSON and telemetry
  std::string heading; // in text
};

struct Table {
  std::string name; // lower case, digits and _; the key in JSON, the title in text
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string note; // a sentence under the table in text; may be empty
};

using Report = std::vector<Table>;

/// Tables with a title and a frame; numbers are right-aligned. An empty table says "none".
std::string to_text(const Report& report);

/// {"name": [{"key": value, …}, …], …}
std::string to_json(const Report& report);

} // namespace weir::report
