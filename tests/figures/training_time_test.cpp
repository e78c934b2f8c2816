// SPDX-License-Identifier: BSD-3-Clause
#include "training_time.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::figures {
namespace {

constexpr std::uint64_t kSide = 4;

struct ProductCase {
  const char* description;
  MatrixProduct product;
  std::uint64_t one_by_one;
  std::uint64_t back_to_back;
};

// By hand, an array of 4 x 4. One by one a fold takes 2 · 4 + 4 + depth - 2. Back to back it takes
// its depth, but no less than it has rows; what is added is rows - 1 + columns - 1 of a fold.
TEST(SystolicArray, TakesTheCyclesCountedByHand) {
  const std::vector<ProductCase> cases{
      {"one value", {1, 1, 7}, 17, 7 + 0},
      {"one full fold", {4, 4, 9}, 19, 9 + 6},
      {"a fold whose results take longer to leave than to make", {4, 4, 1}, 11, 4 + 6},
      {"few rows, which leave sooner", {2, 4, 1}, 11, 2 + 4},
      {"two folds of columns", {4, 5, 9}, 38, 18 + 6},
      {"rows of one full fold and of half a one, twice", {6, 8, 1}, 44, 2 * (4 + 2) + 6},
      {"no values", {0, 4, 9}, 0, 0},
  };
  for (const ProductCase& one : cases) {
    EXPECT_EQ(cycles_of(one.product, kSide, Folds::one_by_one), one.one_by_one) << one.description;
    EXPECT_EQ(cycles_of(one.product, kSide, Folds::back_to_back), one.back_to_back)
        << one.description;
  }
}

// 10 x 10 points, 3 x 3 filters, 2 channels, 40 filters, stride 1: 8 x 8 outputs of 18
// multiplications; 100 points' gradients of 2 channels, each of 360; 18 x 40 weights' of 64.
TEST(TrainingTime, MakesThreeProductsOfALayer) {
  const Layer layer{10, 10, 3, 3, 2, 40, 1};
  const LayerCycles cycles = cycles_of(layer, Folds::one_by_one);
  EXPECT_EQ(cycles.forward, 2U * 2 * (94 + 18));
  EXPECT_EQ(cycles.backward, 4U * 1 * (94 + 360) + 1U * 2 * (94 + 64));
}

// (7 - 3) / 2 + 1 = 3 outputs on a side.
TEST(TrainingTime, CountsTheOutputsOfAStride) {
  const Layer layer{.height = 7,
                    .width = 7,
                    .filter_height = 3,
                    .filter_width = 3,
                    .channels = 1,
                    .filters = 1,
                    .stride = 2};
  EXPECT_EQ(layer.output_points(), 9U);
}

// 1024 weights on 16 arrays are 64 each, two rounds of 32, from 16 arrays: 32 cycles of 1 ns.
TEST(TrainingTime, AddsTheArraysGradients) {
  const std::vector<Layer> layers{{.channels = 32, .filters = 32}};
  const ComputeTime time = compute_time_of(layers, Folds::one_by_one);
  const LayerCycles cycles = cycles_of(layers.front(), Folds::one_by_one);
  EXPECT_DOUBLE_EQ(time.backward.front(), static_cast<double>(cycles.backward + 32) / 1000);
  EXPECT_DOUBLE_EQ(time.total(), static_cast<double>(cycles.forward + cycles.backward + 32) / 1000);
}

// Forward ends at 10. The last layer's backward pass ends at 15, its all-reduce of 20 at 35. The
// first one's ends at 22 and waits for the network: 35 + 4.
TEST(TrainingTime, QueuesLayersBehindEachOther) {
  const std::vector<Layer> layers{{.channels = 1, .filters = 1}, {.channels = 1, .filters = 5}};
  const ComputeTime compute{10, {7, 5}};
  const auto a_microsecond_a_byte = [](std::uint64_t bytes) { return static_cast<double>(bytes); };
  EXPECT_DOUBLE_EQ(overlapped_iteration(layers, compute, a_microsecond_a_byte), 39);
}

// The first layer's backward pass ends last, and its all-reduce is all that is left: 10 + 5 + 70
// + 4.
TEST(TrainingTime, HidesAllReducesBehindTheBackwardPass) {
  const std::vector<Layer> layers{{.channels = 1, .filters = 1}, {.channels = 1, .filters = 5}};
  const ComputeTime compute{10, {70, 5}};
  const auto a_microsecond_a_byte = [](std::uint64_t bytes) { return static_cast<double>(bytes); };
  EXPECT_DOUBLE_EQ(overlapped_iteration(layers, compute, a_microsecond_a_byte), 89);
}

// As the networks' own papers and public implementations count weights, without biases and
// normalization.
TEST(DeepNetworks, HaveTheWeightsOfTheirPapers) {
  for (const DeepNetwork& network : deep_networks()) {
    const std::uint64_t weights = gradient_bytes(network.layers()) / sizeof(float);
    if (network.name == "ResNet50") {
      EXPECT_EQ(weights, 25'502'912U);         // 25.6 million with biases and normalization
      EXPECT_EQ(network.layers().size(), 54U); // 50 and the four beside the stages' first blocks
    }
    if (network.name == "AlexNet") { // §3.5, one GPU
      EXPECT_EQ(weights, 96U * 363 + 256U * 2400 + 384U * 2304 + 384U * 3456 + 256U * 3456);
    }
  }
}

TEST(DeepNetworks, StandByTheSizeOfTheirGradients) {
  std::uint64_t before = 0;
  for (const DeepNetwork& network : deep_networks()) {
    const std::uint64_t bytes = gradient_bytes(network.layers());
    EXPECT_LT(before, bytes) << network.name;
    before = bytes;
  }
}

} // namespace
} // namespace weir::figures
