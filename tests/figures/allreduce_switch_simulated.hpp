// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Figures of AllReduce-Switch that run packets through the simulator or through the real switch.

#include "figure.hpp"

namespace weir::figures::allreduce_switch {

/// AS2, Table VIII: six models, ring against switch.
void models(const Settings& settings, Results& results);

/// AS3, Fig. 18: ring against switch for 2 to 8 hosts.
void by_hosts(const Settings& settings, Results& results);

/// AS8, §IV-D2 to F: shares of an output, and rings of 2 to 8 ports.
void arbitration(const Settings& settings, Results& results);

} // namespace weir::figures::allreduce_switch
