// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/monitor.hpp"

namespace weir::control {

class PortAdmin;

/// Lets the workers know which ports have no link (docs/protocol.md §11.7).
class LinkMonitor : public MonitorReader {
 public:
  /// `ports` outlives it.
  explicit LinkMonitor(PortAdmin& ports) : ports_(ports) {}

  void see(const Look& look) override;

 private:
  PortAdmin& ports_;
};

} // namespace weir::control
