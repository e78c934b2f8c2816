// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/memory.hpp"
#include "control/placement.hpp"
#include "lcore/lcore.hpp"
#include "workload.hpp"

#include <cstdint>
#include <vector>

namespace weir::bench {

/// The tables that all lcores of a workload's switch share.
struct SharedTables {
  /// `queue_room` is stage::Worker::Settings::queue_room.
  explicit SharedTables(const Workload& workload, std::uint32_t queue_room = 0);

  /// The settings of the workers of such a switch with several.
  stage::Worker::Settings team_settings();

  /// The settings of a worker of such a switch.
  stage::Worker::Settings worker_settings();

  static constexpr std::size_t kMostLcores = 64;

  std::uint32_t queue_room;
  control::EalMemory memory{control::kNoNode}; // for slots and results, as the switch has it
  ring::CurrentRings rings;
  conn::ForeignSessions foreign_sessions{{}, stage::ways_out_by(bridge)};
  conn::QueuePairClaims claims{conn::QueuePairClaims::most_of(*rings), {}};
  conn::ConnectionOwners owners{conn::QueuePairClaims::most_of(*rings), kMostLcores, {}};
  conn::PortBindings ports_of_members{rings};
  l2::MacTable stations;
  l2::Bridge bridge;
  conn::CurrentOperators operators;
  lcore::Lcore::Shared shared;
};

/// All rings of a workload, by their index in the set.
std::vector<std::uint16_t> all_rings(const Workload& workload);

} // namespace weir::bench
