// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/incident.hpp"

#include <atomic>
#include <cstdint>

namespace weir::manager {

/// Processes of the gate that did not end by themselves. One thread notes, any reads.
struct GateCounts {
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> acceptors = 0;

  void note(gate::Incident incident) {
    if (incident != gate::Incident::refused) {
      ++(incident == gate::Incident::connection_killed ? connections : acceptors);
    }
  }
};

} // namespace weir::manager
