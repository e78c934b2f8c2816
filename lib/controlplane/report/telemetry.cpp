// SPDX-License-Identifier: BSD-3-Clause
#include "report/telemetry.hpp"

#include "report/questions.hpp"

#include <fmt/format.h>
#include <rte_telemetry.h>

#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

namespace weir::report {
namespace {

// Written by Telemetry's constructor and destructor, read by the telemetry thread.
std::mutex served_mutex;
control::Switch* served = nullptr;

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
void add_table(rte_tel_data* answer, const Table& table) {
  rte_tel_data* rows = rte_tel_data_alloc();
  rte_tel_data_start_dict(rows);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
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
    for (const Table& table : question.ask(weir, argument)) {
      add_table(answer, table);
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
