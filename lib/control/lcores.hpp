// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/placement.hpp"
#include "dataplane/lcore.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace weir::control {

/// The data lcores of a placement, in its order, wired to one another and to the ports' devices.
/// They refer to `shared`. EAL is up.
std::vector<std::unique_ptr<dataplane::Lcore>>
make_lcores(const Placement& placement, const dataplane::Lcore::Shared& shared,
            const dataplane::Worker::Settings& settings,
            std::span<const dataplane::TxQueues> queues_of_port);

} // namespace weir::control
