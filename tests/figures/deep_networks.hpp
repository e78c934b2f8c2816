// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The seven networks whose training MultiTree evaluates (ISCA'21 §V-B): "the DNN models provided
/// by SCALE-Sim". Their layers are those of SCALE-Sim's tables (github.com/ARM-software/SCALE-Sim,
/// commit bb76184). These differ in places from the networks' papers; each function says where.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::figures {

/// A convolution without padding. A fully connected layer has a single point.
struct Layer {
  std::uint32_t height = 1; // of the input, as width
  std::uint32_t width = 1;
  std::uint32_t filter_height = 1;
  std::uint32_t filter_width = 1;
  std::uint32_t channels = 0;
  std::uint32_t filters = 0;
  std::uint32_t stride = 1;

  std::uint64_t weights() const {
    return std::uint64_t{filter_height} * filter_width * channels * filters;
  }

  std::uint64_t output_points() const {
    return std::uint64_t{(height - filter_height) / stride + 1} *
           ((width - filter_width) / stride + 1);
  }

  bool operator==(const Layer&) const = default;
};

struct DeepNetwork {
  /// MultiTree §VI-C groups networks by this; AlphaGoZero is in neither group.
  enum class Kind : std::uint8_t { computing, communicating, neither };

  std::string_view name;
  Kind kind{};
  std::vector<Layer> (*layers)(); // in the order of the forward pass
};

/// By the size of their gradients, smallest first.
std::span<const DeepNetwork> deep_networks();

/// AlexNet with its second layer at 27 x 27, as in its paper; the rest is as in deep_networks().
std::vector<Layer> alexnet_of_its_paper();

/// In float32.
std::uint64_t gradient_bytes(std::span<const Layer> layers);

} // namespace weir::figures
