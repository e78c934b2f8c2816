// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Which ports a reload opens and closes. Nothing here touches a device.

#include "config/config.hpp"
#include "control/port.hpp"
#include "region/spec.hpp"
#include "ring/ring_set.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::control {

/// What ports may take of what the switch set aside at start: places, and buffers for their queues.
/// A buffer holds a frame of the longest MTU of then.
class PortBudget {
 public:
  explicit PortBudget(const config::Config& at_start);

  /// Throws PortError when one port more is too much: what it needs, and what there is.
  void check(const config::PortConfig& port, const std::vector<config::PortConfig>& present) const;

 private:
  std::size_t ports_;
  std::uint64_t frames_; // in queues of all ports
  std::uint16_t mtu_;
};

struct PortPlan {
  /// All ports afterwards, each at the place that is its number in the switch.
  std::vector<config::PortConfig> places;
  std::vector<std::uint16_t> opened; // places, which were free before
  std::vector<std::uint16_t> closed; // places
};

/// From the running switch's places to the ports of a file, by name. Ports come before others go,
/// so none of them takes the place, the buffers or the device of one that goes. A switch that was
/// started without spare.ports keeps those that it has. Throws PortError when they do not fit.
PortPlan plan_ports(const config::Config& in_force, const std::vector<config::PortConfig>& wanted,
                    const PortBudget& budget);

/// Throws PortError when a member of a ring may be behind a port that is too small for its packets.
void check_mtu(const config::PortConfig& port, const ring::RingSpec& ring);

/// The same for a region that has not heard all of its members.
void check_mtu(const config::PortConfig& port, const region::RegionSpec& region);

} // namespace weir::control
