// SPDX-License-Identifier: BSD-3-Clause
#include "report/report.hpp"

#include "text/json.hpp"
#include "text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace weir::report {
namespace {

using Out = std::back_insert_iterator<std::string>;

struct CellText {
  std::string operator()(std::uint64_t number) const { return fmt::format("{}", number); }

  std::string operator()(double number) const { return fmt::format("{:.2f}", number); }

  std::string operator()(const std::string& text) const { return text::printable(text); }
};

/// Counts columns, not bytes: headings and cells may hold UTF-8.
std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

/// Text stands on the left of its column, a number on the right.
enum class Side : std::uint8_t { left, right };

Side side_of(const Cell& cell) {
  return std::holds_alternative<std::string>(cell) ? Side::left : Side::right;
}

std::string padded(std::string_view text, std::size_t width, Side side) {
  const std::string gap(width - std::min(width, display_width(text)), ' ');
  return side == Side::right ? gap + std::string(text) : std::string(text) + gap;
}

std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.shape->columns.size(); ++column) {
    std::size_t width = display_width(table.shape->columns[column].heading);
    for (const auto& row : table.rows) {
      width = std::max(width, display_width(std::visit(CellText{}, row[column])));
    }
    widths.push_back(width);
  }
  return widths;
}

void write_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

void write_text(std::string& text, const Table& table) {
  text += std::string(table.shape->name) + "\n";
  const std::vector<std::size_t> widths = column_widths(table);
  std::string heading = " ";
  std::string rule = " ";
  for (std::size_t column = 0; column < widths.size(); ++column) {
    const Side side = table.rows.empty() ? Side::left : side_of(table.rows[0][column]);
    heading += " " + padded(table.shape->columns[column].heading, widths[column], side) + " ";
    rule += " " + std::string(widths[column], '-') + " ";
  }
  if (table.rows.empty()) {
    text += "  none\n";
  } else {
    write_line(text, heading);
    write_line(text, rule);
  }
  for (const auto& row : table.rows) {
    std::string line = " ";
    for (std::size_t column = 0; column < widths.size(); ++column) {
      const Cell& cell = row[column];
      line += " " + padded(std::visit(CellText{}, cell), widths[column], side_of(cell)) + " ";
    }
    write_line(text, line);
  }
  if (!table.note.empty()) {
    text += "  " + text::printable(table.note) + "\n";
  }
}

struct CellJson {
  std::string operator()(std::uint64_t number) const { return fmt::format("{}", number); }

  std::string operator()(double number) const { return fmt::format("{:.6g}", number); }

  std::string operator()(const std::string& text) const { return text::json_string(text); }
};

std::string row_json(const Table& table, const std::vector<Cell>& row) {
  std::string json = "{";
  for (std::size_t column = 0; column < row.size(); ++column) {
    fmt::format_to(Out(json), "{}{}: {}", column == 0 ? "" : ", ",
                   text::json_string(table.shape->columns[column].key),
                   std::visit(CellJson{}, row[column]));
  }
  return json + "}";
}

} // namespace

std::string to_text(const Report& report) {
  std::string text;
  for (const Table& table : report) {
    if (!text.empty()) {
      text += "\n";
    }
    write_text(text, table);
  }
  return text;
}

std::string to_json(const Report& report) {
  std::string json = "{";
  for (const Table& table : report) {
    json += json.size() > 1 ? ",\n " : "\n ";
    json += text::json_string(table.shape->name) + ": [";
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      json += (row == 0 ? "\n  " : ",\n  ") + row_json(table, table.rows[row]);
    }
    json += table.rows.empty() ? "]" : "\n ]";
  }
  return json + "\n}\n";
}

} // namespace weir::report
