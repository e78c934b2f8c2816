// SPDX-License-Identifier: BSD-3-Clause
#include "deep_networks.hpp"

#include <array>

namespace weir::figures {
namespace {

using Layers = std::vector<Layer>;

Layer square(std::uint32_t side, std::uint32_t filter, std::uint32_t channels,
             std::uint32_t filters, std::uint32_t stride = 1) {
  return {side, side, filter, filter, channels, filters, stride};
}

Layer connected(std::uint32_t inputs, std::uint32_t outputs) {
  return {.channels = inputs, .filters = outputs};
}

/// Silver et al., Nature 550 (2017), with one of its 19 or 39 residual blocks.
Layers alphago_zero() {
  constexpr std::uint32_t kBoard = 19;
  return {square(kBoard, 3, 17, 256),      square(kBoard, 3, 256, 256),
          square(kBoard, 3, 256, 256),     square(kBoard, 1, 256, 1),
          connected(kBoard * kBoard, 256), connected(256, 1),
          square(kBoard, 1, 256, 2),       connected(2 * kBoard * kBoard, kBoard * kBoard + 1)};
}

/// Krizhevsky et al., NIPS 2012, without its fully connected layers and on one GPU.
Layers alexnet_with(std::uint32_t second_side) {
  return {square(224, 11, 3, 96, 4), square(second_side, 5, 96, 256), square(13, 3, 256, 384),
          square(13, 3, 384, 384), square(13, 3, 384, 256)};
}

/// The table's second layer has 207 x 207 points where the paper has 27 x 27.
Layers alexnet() {
  return alexnet_with(207);
}

/// A row of Table 1 of GoogLeNet's paper: filters of each branch, and of the 1x1 layers before.
struct Inception {
  std::uint32_t side;
  std::uint32_t channels;
  std::uint32_t ones;
  std::uint32_t before_threes;
  std::uint32_t threes;
  std::uint32_t before_fives;
  std::uint32_t fives;
  std::uint32_t pooled;
  // Where SCALE-Sim's table differs from the paper's:
  std::uint32_t five = 5;
  std::uint32_t channels_before_threes = 0; // 0: channels
  std::uint32_t channels_of_fives = 0;      // 0: before_fives
};

void append(Layers& layers, const Inception& module) {
  const std::uint32_t side = module.side;
  const std::uint32_t to_threes =
      module.channels_before_threes == 0 ? module.channels : module.channels_before_threes;
  const std::uint32_t of_fives =
      module.channels_of_fives == 0 ? module.before_fives : module.channels_of_fives;
  layers.insert(layers.end(), {square(side, 1, module.channels, module.ones),
                               square(side, 1, to_threes, module.before_threes),
                               square(side, 3, module.before_threes, module.threes),
                               square(side, 1, module.channels, module.before_fives),
                               square(side, module.five, of_fives, module.fives),
                               square(side, 1, module.channels, module.pooled)});
}

/// Szegedy et al., CVPR 2015.
Layers googlenet() {
  constexpr std::array<Inception, 9> kModules{{
      {28, 192, 64, 96, 128, 16, 32, 32},
      {28, 256, 128, 128, 192, 32, 96, 64},
      {14, 480, 192, 96, 208, 16, 48, 64},
      {14, 512, 160, 112, 224, 24, 64, 64},
      {14, 512, 128, 128, 256, 24, 64, 64, 1},
      {14, 512, 112, 144, 288, 32, 64, 64},
      {14, 528, 256, 160, 320, 32, 128, 128},
      {7, 832, 256, 160, 320, 32, 128, 128, 5, 532},
      {7, 832, 384, 192, 384, 48, 128, 128, 5, 0, 32},
  }};
  Layers layers{square(224, 7, 3, 64, 2), square(56, 1, 64, 64), square(56, 3, 64, 192)};
  for (const Inception& module : kModules) {
    append(layers, module);
  }
  layers.push_back(connected(1024, 1000));
  return layers;
}

/// He et al., WWW 2017: embeddings of users and items for both of its halves, then the perceptron.
Layers collaborative_filtering() {
  constexpr std::uint32_t kUsers = 138'000; // of MovieLens-20M; the table has as many items
  return {connected(kUsers, 8), connected(kUsers, 8), connected(kUsers, 32), connected(kUsers, 32),
          connected(64, 32),    connected(32, 16),    connected(16, 8),      connected(16, 1)};
}

/// A stage of bottleneck blocks (He et al., CVPR 2016, Table 1). The first block has a projection
/// layer for its shortcut.
struct Stage {
  std::uint32_t side; // of its input
  std::uint32_t channels;
  std::uint32_t middle;
  std::uint32_t blocks;
  std::uint32_t stride;
};

void append(Layers& layers, const Stage& stage) {
  const std::uint32_t side = stage.side / stage.stride;
  const std::uint32_t wide = 4 * stage.middle;
  layers.push_back(square(stage.side, 1, stage.channels, stage.middle, stage.stride));
  layers.push_back(square(side, 3, stage.middle, stage.middle));
  layers.push_back(square(side, 1, stage.middle, wide));
  layers.push_back(square(stage.side, 1, stage.channels, wide, stage.stride));
  for (std::uint32_t block = 1; block < stage.blocks; ++block) {
    layers.push_back(square(side, 1, wide, stage.middle));
    layers.push_back(square(side, 3, stage.middle, stage.middle));
    layers.push_back(square(side, 1, stage.middle, wide));
  }
}

Layers resnet_up_to(std::size_t stages) {
  constexpr std::array<Stage, 4> kStages{
      {{56, 64, 64, 3, 1}, {56, 256, 128, 4, 2}, {28, 512, 256, 6, 2}, {14, 1024, 512, 3, 2}}};
  Layers layers{square(224, 7, 3, 64, 2)};
  for (std::size_t stage = 0; stage < stages; ++stage) {
    append(layers, kStages.at(stage));
  }
  return layers;
}

/// Ren et al., NIPS 2015: ResNet50 up to its fourth stage, for images of 224 x 224, and the region
/// proposal network. The detector is not in the table.
Layers faster_rcnn() {
  Layers layers = resnet_up_to(3);
  layers.insert(layers.end(),
                {square(14, 3, 1024, 512), square(14, 1, 512, 36), square(14, 1, 512, 18)});
  return layers;
}

Layers resnet50() {
  Layers layers = resnet_up_to(4);
  layers.push_back(connected(2048, 1000));
  return layers;
}

/// The table gives each of the 8 heads its own output matrix, so its gradients are 295 MiB and not
/// the paper's 65 million values. Except for the embedding, it is for one position of a sentence.
void append_heads(Layers& layers, std::uint32_t heads) {
  for (std::uint32_t head = 0; head < heads; ++head) {
    layers.insert(layers.end(),
                  {connected(512, 64), connected(512, 64), connected(512, 64),
                   Layer{.width = 64, .channels = 1, .filters = 64},
                   Layer{.width = 64, .channels = 64, .filters = 1}, connected(512, 512)});
  }
}

void append_blocks(Layers& layers, std::uint32_t heads) {
  constexpr Layer kEmbedding{.height = 512, .channels = 1, .filters = 33708};
  constexpr std::uint32_t kBlocks = 6;
  layers.push_back(kEmbedding);
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    append_heads(layers, heads);
    layers.push_back(connected(512, 2048));
    layers.push_back(connected(2048, 512));
  }
}

/// Vaswani et al., NIPS 2017, base model: a decoder's block attends twice.
Layers transformer() {
  constexpr std::uint32_t kHeads = 8;
  Layers layers;
  append_blocks(layers, kHeads);
  append_blocks(layers, 2 * kHeads);
  layers.push_back(connected(512, 512));
  return layers;
}

using Kind = DeepNetwork::Kind;

constexpr std::array<DeepNetwork, 7> kNetworks{{
    {"AlphaGoZero", Kind::neither, alphago_zero},
    {"AlexNet", Kind::computing, alexnet},
    {"GoogLeNet", Kind::computing, googlenet},
    {"NCF", Kind::communicating, collaborative_filtering},
    {"FasterRCNN", Kind::computing, faster_rcnn},
    {"ResNet50", Kind::computing, resnet50},
    {"Transformer", Kind::communicating, transformer},
}};

} // namespace

std::span<const DeepNetwork> deep_networks() {
  return kNetworks;
}

std::vector<Layer> alexnet_of_its_paper() {
  return alexnet_with(27);
}

std::uint64_t gradient_bytes(std::span<const Layer> layers) {
  std::uint64_t weights = 0;
  for (const Layer& layer : layers) {
    weights += layer.weights();
  }
  return weights * sizeof(float);
}

} // namespace weir::figures
