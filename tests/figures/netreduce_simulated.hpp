// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Figures of NetReduce that run packets through the simulator or through the real switch.

#include "figure.hpp"

namespace weir::figures::netreduce {

/// NR3, Table 7: ring against switch with four hosts.
void single_gpu_hosts(const Settings& settings, Results& results);

/// NR6, §3.2: throughput by the window N.
void window(const Settings& settings, Results& results);

/// NR8, §3.3, Fig. 5: two racks, bytes by port.
void two_racks(const Settings& settings, Results& results);

/// NR9, §3.2: repeats and packets without their FIRST, through the real switch.
void repeats(const Settings& settings, Results& results);

} // namespace weir::figures::netreduce
