// SPDX-License-Identifier: BSD-3-Clause
#include "report/telemetry.hpp"

#include "report/shows.hpp"

#include <fmt/format.h>
#include <rte_telemetry.h>

#include <cerrno>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace weir::report {
namespace {

struct Endpoint {
  const char* path;
  const char* help;
  Report (*show)(control::Switch&, std::string_view parameter);
};

std::string_view or_all(std::string_view parameter) {
  return parameter.empty() ? "all" : parameter;
}

constexpr Endpoint kEndpoints[] = {
    {"/weir/port/info", "Ports and their devices. Parameter: name, default all",
     [](control::Switch& weir, std::string_view port) {
       return show_port_information(weir, or_all(port));
     }},
    {"/weir/port/stats", "Packets and bytes of ports. Parameter: name, default all",
     [](control::Switch& weir, std::string_view port) {
       return show_port_statistics(weir, or_all(port));
     }},
    {"/weir/port/xstats", "The drivers' own statistics. Parameter: name, default all",
     [](control::Switch& weir, std::string_view port) {
       return show_port_extended(weir, or_all(port));
     }},
    {"/weir/ring", "Rings; one ring with members, drops and slot times. Parameter: id, default all",
     [](control::Switch& weir, std::string_view ring) { return show_rings(weir, or_all(ring)); }},
    {"/weir/ring/stuck", "The oldest unfinished slots and the ranks they wait for. Parameter: id",
     [](control::Switch& weir, std::string_view ring) { return show_stuck(weir, ring); }},
    {"/weir/conn", "Queue pairs between ring neighbours",
     [](control::Switch& weir, std::string_view) { return show_connections(weir); }},
    {"/weir/drops", "Every drop reason with its count",
     [](control::Switch& weir, std::string_view) { return show_drops(weir); }},
    {"/weir/accounting", "received = forwarded + consumed + dropped + held + queued",
     [](control::Switch& weir, std::string_view) { return show_accounting(weir); }},
    {"/weir/fdb", "Stations and their ports",
     [](control::Switch& weir, std::string_view) { return show_stations(weir); }},
    {"/weir/lcores", "What each lcore does and how busy it is",
     [](control::Switch& weir, std::string_view) { return show_lcores(weir); }},
    {"/weir/memory", "The frame pool and the rings' memory",
     [](control::Switch& weir, std::string_view) { return show_memory(weir); }},
};

// Written by Telemetry's constructor and destructor, read by the telemetry thread.
std::mutex served_mutex;
control::Switch* served = nullptr;

void add_cell(rte_tel_data* row, const std::string& key, const Cell& cell) {
  if (const auto* number = std::get_if<std::uint64_t>(&cell)) {
    rte_tel_data_add_dict_u64(row, key.c_str(), *number);
  } else if (const auto* real = std::get_if<double>(&cell)) {
    rte_tel_data_add_dict_string(row, key.c_str(), fmt::format("{:.2f}", *real).c_str());
  } else {
    rte_tel_data_add_dict_string(row, key.c_str(), std::get<std::string>(cell).c_str());
  }
}

/// Tables become dictionaries of numbered rows: DPDK's writer nests dictionaries, but no arrays of
/// them.
void add_table(rte_tel_data* answer, const Table& table) {
  rte_tel_data* rows = rte_tel_data_alloc();
  rte_tel_data_start_dict(rows);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    rte_tel_data* row = rte_tel_data_alloc();
    rte_tel_data_start_dict(row);
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      add_cell(row, table.columns[column].key, table.rows[i][column]);
    }
    if (rte_tel_data_add_dict_container(rows, std::to_string(i).c_str(), row, 0) != 0) {
      rte_tel_data_free(row); // more rows than a dictionary takes
      break;
    }
  }
  rte_tel_data_add_dict_container(answer, table.name.c_str(), rows, 0);
}

/// Called by DPDK's telemetry thread: `command` is one of kEndpoints' paths.
int answer_request(const char* command, const char* parameters, rte_tel_data* answer) {
  const std::lock_guard lock(served_mutex);
  if (served == nullptr) {
    return -ENODEV;
  }
  for (const Endpoint& endpoint : kEndpoints) {
    if (std::string_view(endpoint.path) != command) {
      continue;
    }
    try {
      rte_tel_data_start_dict(answer);
      for (const Table& table : endpoint.show(*served, parameters == nullptr ? "" : parameters)) {
        add_table(answer, table);
      }
      return 0;
    } catch (const std::exception& error) {
      rte_tel_data_add_dict_string(answer, "error", error.what());
      return 0;
    }
  }
  return -ENOENT;
}

} // namespace

Telemetry::Telemetry(control::Switch& weir) {
  {
    const std::lock_guard lock(served_mutex);
    served = &weir;
  }
  for (const Endpoint& endpoint : kEndpoints) {
    // DPDK has no way to take a command back, so a second Telemetry finds them there.
    if (const int error = rte_telemetry_register_cmd(endpoint.path, answer_request, endpoint.help);
        error != 0 && error != -EEXIST) {
      throw std::runtime_error(fmt::format("telemetry command {}: error {}", endpoint.path, error));
    }
  }
}

Telemetry::~Telemetry() {
  const std::lock_guard lock(served_mutex);
  served = nullptr;
}

} // namespace weir::report
