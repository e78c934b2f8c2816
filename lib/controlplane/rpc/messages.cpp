// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/messages.hpp"

#include "text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace weir::rpc {
namespace {

void check_text(std::string_view what, const std::string& text) {
  const bool is_printable = text::is_printable(text); // words end in logs and on terminals
  if (text.size() > kMostWordBytes || !is_printable) {
    throw WrongMessage(fmt::format("{}: found {} bytes{}; allowed: at most {} printable bytes",
                                   what, text.size(),
                                   is_printable ? "" : " with control characters", kMostWordBytes));
  }
}

void write_cell(const report::Cell& cell, v1::Cell& message) {
  if (const auto* number = std::get_if<std::uint64_t>(&cell)) {
    message.set_number(*number);
  } else if (const auto* real = std::get_if<double>(&cell)) {
    message.set_real(*real);
  } else {
    message.set_text(std::get<std::string>(cell));
  }
}

void write_table(const report::Table& table, v1::Table& message) {
  message.set_name(std::string(table.shape->name));
  message.set_note(table.note);
  for (const report::Column& column : table.shape->columns) {
    v1::Column& row = *message.add_columns();
    row.set_key(std::string(column.key));
    row.set_heading(std::string(column.heading));
  }
  for (const std::vector<report::Cell>& row : table.rows) {
    v1::Row& cells = *message.add_rows();
    for (const report::Cell& cell : row) {
      write_cell(cell, *cells.add_cells());
    }
  }
}

report::Cell cell_of(const v1::Cell& message) {
  switch (message.value_case()) {
  case v1::Cell::kNumber:
    return message.number();
  case v1::Cell::kReal:
    return message.real();
  case v1::Cell::kText:
    return message.text();
  case v1::Cell::VALUE_NOT_SET:
    break;
  }
  return std::string();
}

} // namespace

command::Words words_of(const WordList& words) {
  if (words.empty() || words.size() > kMostWords) {
    throw WrongMessage(
        fmt::format("words: found {}; allowed: 1 to {} words", words.size(), kMostWords));
  }
  for (const std::string& word : words) {
    if (word.empty()) {
      throw WrongMessage("words: found an empty one; allowed: words such as those of `help`");
    }
    check_text("words", word);
  }
  return {words.begin(), words.end()};
}

std::string line_of(const v1::CompleteRequest& request) {
  check_text("line", request.line());
  return request.line();
}

std::chrono::milliseconds period_of(const v1::WatchStatisticsRequest& request) {
  const std::chrono::milliseconds period(request.period_ms());
  if (period < kShortestPeriod || period > kLongestPeriod) {
    throw WrongMessage(fmt::format("period_ms: found {}; allowed: {} .. {}", period.count(),
                                   kShortestPeriod.count(), kLongestPeriod.count()));
  }
  return period;
}

std::size_t bytes_of(const google::protobuf::Message& message) {
  return message.SpaceUsedLong() + message.ByteSizeLong();
}

void write(const report::Report& report, google::protobuf::RepeatedPtrField<v1::Table>& tables) {
  for (const report::Table& table : report) {
    write_table(table, *tables.Add());
  }
}

void write(const command::Answer& answer, v1::ExecuteResponse& response) {
  if (const auto* text = std::get_if<std::string>(&answer)) {
    response.set_text(*text);
  } else {
    write(std::get<report::Report>(answer), *response.mutable_tables()->mutable_tables());
  }
}

ReceivedReport::ReceivedReport(google::protobuf::RepeatedPtrField<v1::Table> tables)
    : tables_(std::move(tables)) {
  for (const v1::Table& table : tables_) {
    read(table);
  }
}

void ReceivedReport::read(const v1::Table& message) {
  std::vector<report::Column>& columns = columns_.emplace_back();
  for (const v1::Column& column : message.columns()) {
    columns.push_back({column.key(), column.heading()});
  }
  report::Table& table =
      report_.emplace_back(shapes_.emplace_back(report::TableShape{message.name(), columns, {}}));
  table.note = message.note();
  for (const v1::Row& row : message.rows()) {
    if (row.cells_size() != message.columns_size()) {
      throw WrongMessage(fmt::format("table {}: found a row of {} cells; allowed: {}, as it has "
                                     "columns",
                                     message.name(), row.cells_size(), message.columns_size()));
    }
    std::vector<report::Cell>& cells = table.rows.emplace_back();
    std::ranges::transform(row.cells(), std::back_inserter(cells), cell_of);
  }
}

} // namespace weir::rpc
