// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

namespace weir::report {

/// Serves the prompt's answers under /weir/… of DPDK's telemetry socket while it lives. Only one at
/// a time: DPDK's callbacks have no context argument.
class Telemetry {
 public:
  explicit Telemetry(control::Switch& weir);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;
};

} // namespace weir::report
