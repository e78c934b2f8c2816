// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a running switch makes of its changed configuration file. Nothing here touches the switch.

#include "config/config.hpp"
#include "config/difference.hpp"
#include "control/port_plan.hpp"
#include "ring/ring_set.hpp"

#include <cstdint>
#include <vector>

namespace weir::control {

/// What the file says now.
struct WantedConfig {
  config::Config config;
  PortPlan ports;
  std::vector<ring::RingSpec> rings; // the same; members' ports are places of the plan
};

/// Reads the file that `in_force` was read from. Throws ConfigError, also for a ring that does not
/// suit the ports that there will be, and PortError for ports that do not fit.
WantedConfig read_wanted(const config::Config& in_force, const PortBudget& budget);

/// Rings first go, then change in place, then come.
struct ReloadPlan {
  std::vector<config::Change> changes;
  std::vector<ring::RingSpec> withdrawn; // those made anew too
  std::vector<ring::RingSpec> changed;   // as they are to be; ring::RingSet::with_changed
  std::vector<ring::RingSpec> added;     // those made anew too

  /// Whether something changes that stays.
  bool changes_in_place() const;

  /// The rings of `present` that are not withdrawn, as they are to be.
  std::vector<ring::RingSpec> staying(const ring::RingSet& present) const;
};

/// `in_force` has the rings of the file; `present` also those that were made while the switch runs.
/// These stay, and one that the file now has as it is becomes the file's. Throws RingRefused when
/// the file has another ring with the id of one of these.
ReloadPlan plan_reload(const config::Config& in_force, const WantedConfig& wanted,
                       const ring::RingSet& present);

} // namespace weir::control
