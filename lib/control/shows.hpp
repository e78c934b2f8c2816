// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/report.hpp"
#include "control/switch.hpp"

#include <string>
#include <string_view>

namespace weir::control {

/// A word that names nothing; what() says what was found and what is allowed.
class UnknownName : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the prompt shows and the telemetry socket serves. A `port` is a name or "all", a `ring` an
// id or "all".

Report show_port_information(Switch& weir, std::string_view port);
Report show_port_statistics(Switch& weir, std::string_view port);
Report show_port_extended(Switch& weir, std::string_view port);
void clear_port_statistics(Switch& weir, std::string_view port);
Report show_rings(Switch& weir, std::string_view ring);
Report show_stuck(Switch& weir, std::string_view ring);
void reset_ring(Switch& weir, std::string_view ring);
void withdraw_ring(Switch& weir, std::string_view ring);
Report show_connections(Switch& weir);
Report show_drops(Switch& weir);
Report show_accounting(Switch& weir);
Report show_stations(Switch& weir);
Report show_lcores(Switch& weir);
Report show_memory(Switch& weir);
Report show_trace(Switch& weir);

} // namespace weir::control
