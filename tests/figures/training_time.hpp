// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The time of an iteration of data-parallel training (MultiTree, ISCA'21 §V): an accelerator's
/// arrays compute, and gradients are all-reduced afterwards or at the same time. In microseconds.

#include "deep_networks.hpp"
#include "systolic_array.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace weir::figures {

/// Cycles of one array for one sample.
struct LayerCycles {
  std::uint64_t forward = 0;
  /// Gradients of the layer's input (a transposed convolution) and of its weights.
  std::uint64_t backward = 0;
};

LayerCycles cycles_of(const Layer& layer, Folds folds);

/// Time of a whole network on an accelerator where each array has one sample (§V-B: "16 samples per
/// accelerator", "to fully utilize the compute resources").
struct ComputeTime {
  double forward = 0;
  /// By layer, first to last; includes the time to add the arrays' gradients.
  std::vector<double> backward;

  double total() const;
};

ComputeTime compute_time_of(std::span<const Layer> layers, Folds folds);

/// The time of an all-reduce of this many bytes.
using AllReduceTime = std::function<double(std::uint64_t)>;

/// §V-B's layer-wise all-reduce: a layer's gradients are queued when its backward pass ends, the
/// last layer's first, and are sent one layer after the other.
double overlapped_iteration(std::span<const Layer> layers, const ComputeTime& compute,
                            const AllReduceTime& all_reduce);

} // namespace weir::figures
