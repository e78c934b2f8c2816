// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/leases.hpp"
#include "control/monitor.hpp"

#include <cstdint>

namespace weir::control {

class RingAdmin;

/// Reclaims rings that nobody uses (control/leases.hpp).
class LeaseMonitor : public MonitorReader {
 public:
  /// `rings` outlives it. Silence counts from now on.
  explicit LeaseMonitor(RingAdmin& rings);

  void see(const Look& look) override;

 private:
  void reclaim(std::uint32_t ring);

  RingAdmin& rings_;
  Listening listening_;
};

} // namespace weir::control
