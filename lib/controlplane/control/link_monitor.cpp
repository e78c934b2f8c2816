// SPDX-License-Identifier: BSD-3-Clause
#include "control/link_monitor.hpp"

#include "control/port_admin.hpp"

namespace weir::control {

void LinkMonitor::see(const Look&) {
  ports_.follow_links();
}

} // namespace weir::control
