// SPDX-License-Identifier: BSD-3-Clause
#include "training_time.hpp"

#include "inputs.hpp"
#include "units.hpp"

#include <algorithm>
#include <numeric>

namespace weir::figures {
namespace {

using multitree::kArrays;
using multitree::kArraySide;

constexpr double kCyclesPerMicrosecond = multitree::kCyclesPerSecond / 1e6;

double microseconds_of(std::uint64_t cycles) {
  return static_cast<double>(cycles) / kCyclesPerMicrosecond;
}

/// Each array adds a share of the values from every array's gradients, `side` values at once.
std::uint64_t cycles_to_add(const Layer& layer) {
  return divided_up(divided_up(layer.weights(), kArrays), kArraySide) * kArrays;
}

} // namespace

LayerCycles cycles_of(const Layer& layer, Folds folds) {
  const std::uint64_t filter_points = std::uint64_t{layer.filter_height} * layer.filter_width;
  const std::uint64_t input_points = std::uint64_t{layer.height} * layer.width;
  const std::uint64_t window = filter_points * layer.channels;
  const MatrixProduct output{layer.output_points(), layer.filters, window};
  const MatrixProduct input_gradient{input_points, layer.channels, filter_points * layer.filters};
  const MatrixProduct weight_gradient{window, layer.filters, layer.output_points()};
  return {cycles_of(output, kArraySide, folds), cycles_of(input_gradient, kArraySide, folds) +
                                                    cycles_of(weight_gradient, kArraySide, folds)};
}

double ComputeTime::total() const {
  return std::accumulate(backward.begin(), backward.end(), forward);
}

ComputeTime compute_time_of(std::span<const Layer> layers, Folds folds) {
  ComputeTime time;
  for (const Layer& layer : layers) {
    const LayerCycles cycles = cycles_of(layer, folds);
    time.forward += microseconds_of(cycles.forward);
    time.backward.push_back(microseconds_of(cycles.backward + cycles_to_add(layer)));
  }
  return time;
}

double overlapped_iteration(std::span<const Layer> layers, const ComputeTime& compute,
                            const AllReduceTime& all_reduce) {
  double computed = compute.forward;
  double reduced = 0;
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    computed += compute.backward[layer];
    reduced = std::max(reduced, computed) + all_reduce(gradient_bytes(layers.subspan(layer, 1)));
  }
  return std::max(computed, reduced);
}

} // namespace weir::figures
