// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Figures of MultiTree that run packets through the simulator.

#include "figure.hpp"
#include "multitree_networks.hpp"

namespace weir::figures::multitree {

/// MTO, Fig. 9: every algorithm on a network at three sizes, as the authors' own simulator was run.
void compare_with_oracle(const Network& network, const Settings& settings, Results& results);

/// MT1, Fig. 9a: MULTITREE on tori.
void best_on_tori(const Settings& settings, Results& results);

/// MT2, Fig. 9a, b: the double tree on grids.
void worst_on_grids(const Settings& settings, Results& results);

/// MT3, Fig. 9b: 2D-RING and RING on meshes.
void rings_on_meshes(const Settings& settings, Results& results);

/// MT4, Fig. 9c, d: MULTITREE and RING on switch networks.
void over_ring(const Settings& settings, Results& results);

/// MT5, §VI-A: sizes from which DBTREE is slower than RING.
void break_even(const Settings& settings, Results& results);

/// MT6, §VI-A: HDRM, MULTITREE and its message form.
void over_hdrm(const Settings& settings, Results& results);

/// MT7, Fig. 10: tensors that grow with the torus.
void scaling(const Settings& settings, Results& results);

} // namespace weir::figures::multitree
