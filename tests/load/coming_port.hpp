// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

#include <cstdint>

namespace weir::load {

/// What became of a port that was opened and closed.
struct ComingPort {
  unsigned reloads = 0;
  std::uint64_t stops = 0;        // of all lcores
  std::uint64_t stops_needed = 0; // as docs/operating.md has them
  bool is_gone = false;
};

/// Has the configuration file name one port more and name it no more, and the switch read it each
/// time, several times. The port's memory is not looked at: net_null of DPDK 22.11 keeps some.
ComingPort let_a_port_come_and_go(control::Switch& weir);

} // namespace weir::load
