// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What every `show` shows: tables. One description serves the prompt's text, its `json`, the files
/// of weir-replay and the telemetry socket.

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
  std::string name; // a key of lower case, digits and _; also the title in text
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string note; // a sentence under the text table; may be empty
};

using Report = std::vector<Table>;

/// Titled tables with a frame, numbers to the right; an empty table says "none".
std::string to_text(const Report& report);

/// {"name": [{"key": value, …}, …], …}
std::string to_json(const Report& report);

} // namespace weir::report
