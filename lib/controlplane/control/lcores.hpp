// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/memory.hpp"
#include "control/placement.hpp"
#include "lcore/lcore.hpp"
#include "lcore/quiesce.hpp"
#include "ring/ring_set.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace weir::control {

/// The data lcores of a placement, in its order, connected to each other and to the ports' devices.
/// They keep references to `shared` and `memories`: by lcore, for slots and results; empty:
/// settings.memory for all. EAL is up.
std::vector<std::unique_ptr<lcore::Lcore>>
make_lcores(const Placement& placement, const lcore::Lcore::Shared& shared,
            const stage::Worker::Settings& settings,
            std::span<const lcore::TxQueues> queues_of_port, std::span<EalMemory> memories = {});

/// Tells all lcores who works for this ring, and for its neighbours. They stand still.
void route_ring(lcore::LcoreSet& lcores, std::uint16_t ring, const ring::RingSet& rings,
                const Placement& placement);

} // namespace weir::control
