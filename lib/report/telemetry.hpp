// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

namespace weir::report {

/// Serves what the prompt shows under /weir/… of DPDK's telemetry socket, as long as it lives. One
/// at a time: DPDK's callbacks carry no context of their own.
class Telemetry {
 public:
  explicit Telemetry(control::Switch& weir);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;
};

} // namespace weir::report
