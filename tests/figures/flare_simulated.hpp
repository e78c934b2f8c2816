// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Figures of Flare that run packets through the simulator.

#include "figure.hpp"

namespace weir::figures::flare {

/// FL1 beside its formulas: K cores that fold packets under a lock.
void simulated_servers(const Settings& settings, Results& results);

/// FL7, Fig. 15: time of a dense all-reduce, through switches and by hosts in a ring.
void dense_time(const Settings& settings, Results& results);

/// FL8 beside its formulas: bytes counted on the links.
void simulated_traffic(const Settings& settings, Results& results);

} // namespace weir::figures::flare
