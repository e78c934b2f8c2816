// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Figures of MultiTree about the training of seven networks on an 8x8 torus.

#include "figure.hpp"

namespace weir::figures::multitree {

/// MT8, Fig. 11a: the all-reduce of whole gradients.
void gradients(const Settings& settings, Results& results);

/// MT9, Fig. 11a: iterations whose all-reduce follows the backward pass.
void training(const Settings& settings, Results& results);

/// MT10, Fig. 11b: iterations that all-reduce layer by layer, beside the backward pass.
void overlapped_training(const Settings& settings, Results& results);

} // namespace weir::figures::multitree
