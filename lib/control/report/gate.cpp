// SPDX-License-Identifier: BSD-3-Clause
#include "report/gate.hpp"

#include "report/table_shapes.hpp"

#include <string>
#include <string_view>

namespace weir::report {
namespace {

std::string_view text_of(control::GateProcess process) {
  return process == control::GateProcess::connection
             ? "a signal has ended a client's process: it took more memory than it may, or a fault"
             : "the process that accepts has ended, and was started again";
}

} // namespace

/// Both, also one that has not counted.
Report show_gate(control::Switch& weir) {
  Table table(tables::kGate);
  for (std::size_t i = 0; i < control::kGateProcesses; ++i) {
    const auto process = static_cast<control::GateProcess>(i);
    table.rows.push_back({std::string(control::name_of(process)), weir.gate_log().count(process),
                          std::string(text_of(process))});
  }
  return {table};
}

} // namespace weir::report
