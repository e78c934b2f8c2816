// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How long an iteration of data-parallel training takes (MultiTree, ISCA'21 §V): an accelerator's
/// arrays compute, and gradients are all-reduced behind that or beside it. Microseconds.

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

/// Of a whole network on an accelerator, each array having one sample (§V-B: "16 samples per
/// accelerator", "to fully utilize the compute resources").
struct ComputeTime {
  double forward = 0;
  /// By layer, first to last; with what the accelerator takes to add its arrays' gradients.
  std::vector<double> backward;

  double total() const;
};

ComputeTime compute_time_of(std::span<const Layer> layers, Folds folds);

/// What all-reducing so many bytes takes.
using AllReduceTime = std::function<double(std::uint64_t)>;

/// §V-B's layer-wise all-reduce: a layer's gradients are queued when its backward pass ends, the
/// last layer's first, and go one layer after the other.
double overlapped_iteration(std::span<const Layer> layers, const ComputeTime& compute,
                            const AllReduceTime& all_reduce);

} // namespace weir::figures
