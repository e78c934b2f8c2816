// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Figures of Klenk et al. that run packets through the simulator.

#include "figure.hpp"

namespace weir::figures::klenk {

/// KL2, Fig. 7: push, pull and ring on a DGX-2.
void bandwidth_of_16(const Settings& settings, Results& results);

/// KL3, Fig. 8: 64 and 128 GPUs on a fat tree.
void bandwidth_of_128(const Settings& settings, Results& results);

/// KL4, Fig. 9: bandwidth by table size, without waves.
void table_without_waves(const Settings& settings, Results& results);

/// KL5, Fig. 10: bandwidth by waves outstanding.
void waves(const Settings& settings, Results& results);

/// KL6, §VI-D: packet latency with and without waves.
void packet_latency(const Settings& settings, Results& results);

} // namespace weir::figures::klenk
