// SPDX-License-Identifier: BSD-3-Clause
#include "report/telemetry.hpp"

#include "report/questions.hpp"

#include <fmt/format.h>
#include <rte_telemetry.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

namespace weir::report {
namespace {

// Written by Telemetry's constructor and destructor, read by the telemetry thread.
std::mutex served_mutex;
control::Switch* served = nullptr;

/// What an answer has room for. DPDK's writer leaves out each piece that finds none, and so the
/// whole table where its rows left too little for its name. Counts no less than that writer needs.
class Room {
 public:
  /// For the names of all tables: each is in the answer, if without rows.
  explicit Room(const Report& report) {
    for (const Table& table : report) {
      left_ -= bytes_of(table.shape->name) + kPunctuation;
    }
  }

  bool takes(const Table& table, std::size_t index) {
    std::size_t bytes = fmt::formatted_size("{}", index) + kPunctuation;
    for (std::size_t column = 0; column < table.shape->columns.size(); ++column) {
      bytes += bytes_of(table.shape->columns[column].key) + kPunctuation;
      bytes += std::visit(Bytes(), table.rows[index][column]);
    }
    const bool fits = bytes <= left_;
    left_ = fits ? left_ - bytes : 0; // no later row comes in its place
    return fits;
  }

 private:
  static constexpr std::size_t kAnswerBytes = std::size_t{16} * 1024; // DPDK: max_output_len
  static constexpr std::size_t kFrame = 128;     // the command's name and what is around it
  static constexpr std::size_t kPunctuation = 6; // quotes of name and value, colon, comma

  static bool is_escaped(char c) {
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ';
  }

  static std::size_t bytes_of(std::string_view text) {
    return text.size() + static_cast<std::size_t>(std::ranges::count_if(text, is_escaped));
  }

  struct Bytes {
    std::size_t operator()(std::uint64_t number) const { return fmt::formatted_size("{}", number); }

    std::size_t operator()(double real) const { return fmt::formatted_size("{:.2f}", real); }

    std::size_t operator()(const std::string& text) const { return bytes_of(text); }
  };

  std::size_t left_ = kAnswerBytes - kFrame;
};

void add_cell(rte_tel_data* row, std::string_view column, const Cell& cell) {
  const std::string key(column);
  if (const auto* number = std::get_if<std::uint64_t>(&cell)) {
    rte_tel_data_add_dict_u64(row, key.c_str(), *number);
  } else if (const auto* real = std::get_if<double>(&cell)) {
    rte_tel_data_add_dict_string(row, key.c_str(), fmt::format("{:.2f}", *real).c_str());
  } else {
    rte_tel_data_add_dict_string(row, key.c_str(), std::get<std::string>(cell).c_str());
  }
}

/// Writes tables as dictionaries of numbered rows: DPDK's writer nests dictionaries, but has no
/// arrays of them.
void add_table(rte_tel_data* answer, const Table& table, Room& room) {
  rte_tel_data* rows = rte_tel_data_alloc();
  rte_tel_data_start_dict(rows);
  for (std::size_t i = 0; i < table.rows.size() && room.takes(table, i); ++i) {
    rte_tel_data* row = rte_tel_data_alloc();
    rte_tel_data_start_dict(row);
    for (std::size_t column = 0; column < table.shape->columns.size(); ++column) {
      add_cell(row, table.shape->columns[column].key, table.rows[i][column]);
    }
    if (rte_tel_data_add_dict_container(rows, std::to_string(i).c_str(), row, 0) != 0) {
      rte_tel_data_free(row); // the dictionary is full
      break;
    }
  }
  rte_tel_data_add_dict_container(answer, std::string(table.shape->name).c_str(), rows, 0);
}

void add_answer(rte_tel_data* answer, control::Switch& weir, const Question& question,
                std::string_view argument) {
  rte_tel_data_start_dict(answer);
  try {
    const Report report = question.ask(weir, argument, {});
    Room room(report);
    for (const Table& table : report) {
      add_table(answer, table, room);
    }
  } catch (const std::exception& error) {
    rte_tel_data_add_dict_string(answer, "error", error.what());
  }
}

/// DPDK's telemetry thread calls this. `command` is one that Telemetry registered.
int answer_request(const char* command, const char* parameters, rte_tel_data* answer) {
  const std::lock_guard lock(served_mutex);
  if (served == nullptr) {
    return -ENODEV;
  }
  for (const Question& question : questions()) {
    if (question.telemetry == command) {
      add_answer(answer, *served, question, parameters == nullptr ? "" : parameters);
      return 0;
    }
  }
  return -ENOENT;
}

std::string help_of(const Question& question) {
  const Argument* argument = argument_in(question.grammar);
  if (argument == nullptr) {
    return std::string(question.help);
  }
  const std::string fallback =
      argument->fallback.empty() ? "" : fmt::format(", default {}", argument->fallback);
  return fmt::format("{}; parameter: {}{}", question.help, argument->what, fallback);
}

} // namespace

Telemetry::Telemetry(control::Switch& weir) {
  {
    const std::lock_guard lock(served_mutex);
    served = &weir;
  }
  for (const Question& question : questions()) {
    const std::string command(question.telemetry);
    // DPDK cannot unregister a command, so a second Telemetry finds it registered.
    if (const int error =
            rte_telemetry_register_cmd(command.c_str(), answer_request, help_of(question).c_str());
        error != 0 && error != -EEXIST) {
      throw std::runtime_error(fmt::format("telemetry command {}: error {}", command, error));
    }
  }
}

Telemetry::~Telemetry() {
  const std::lock_guard lock(served_mutex);
  served = nullptr;
}

} // namespace weir::report
