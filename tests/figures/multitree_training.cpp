// SPDX-License-Identifier: BSD-3-Clause
#include "multitree_training.hpp"

#include "deep_networks.hpp"
#include "multitree_networks.hpp"
#include "training_time.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace weir::figures::multitree {
namespace {

/// A larger gradient is computed from the time of a part of this size, because a run would take
/// minutes.
constexpr std::uint64_t kLargestByPackets = 64 * kMib;
constexpr std::uint64_t kLargestInQuick = 32 * kMib;
constexpr std::uint64_t kLargestLayerByPackets = 8 * kMib;
constexpr std::uint64_t kSmallestLayerByPackets = kKib;

/// All-reduces on the torus of Fig. 11.
class Torus {
 public:
  explicit Torus(Mutation mutation) : mutation_(mutation) {}

  double us(Way way, std::uint64_t bytes, Order order = Order::as_published) const {
    Run run{kTorus8, way, bytes, order, mutation_};
    run.packets_at_once = way == Way::ring ? kRingWave : 1;
    return microseconds(run);
  }

  /// Time of a whole gradient.
  double of_network(Way way, std::uint64_t bytes) const {
    return bytes <= kLargestByPackets ? us(way, bytes)
                                      : proportional(way, largest_by_packets(), bytes);
  }

  /// Time of a layer's gradient: interpolated between two doublings; beyond the last, at its rate.
  double of_layer(Way way, std::uint64_t bytes) const {
    if (bytes >= kLargestLayerByPackets) {
      return proportional(way, kLargestLayerByPackets, bytes);
    }
    std::uint64_t above = kSmallestLayerByPackets;
    while (above < bytes) {
      above *= 2;
    }
    const double slope = above == kSmallestLayerByPackets ? 0 // latency is all there is
                                                          : (us(way, above) - us(way, above / 2)) /
                                                                (static_cast<double>(above) / 2);
    return us(way, above) - slope * static_cast<double>(above - bytes);
  }

 private:
  double proportional(Way way, std::uint64_t known, std::uint64_t bytes) const {
    return us(way, known) * static_cast<double>(bytes) / static_cast<double>(known);
  }

  /// The largest gradient that is run, so that it is run once.
  static std::uint64_t largest_by_packets() {
    std::uint64_t largest = 0;
    for (const DeepNetwork& network : deep_networks()) {
      const std::uint64_t bytes = gradient_bytes(network.layers());
      largest = bytes <= kLargestByPackets ? std::max(largest, bytes) : largest;
    }
    return largest;
  }

  Mutation mutation_;
};

std::string_view name_of(Folds folds) {
  return folds == Folds::back_to_back ? "back to back" : "one by one";
}

constexpr std::array kSlowWays{Way::ring, Way::ring_2d};
constexpr std::array kMultitrees{Way::multitree, Way::message};

double mebibytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(kMib);
}

/// A network's share of communication time, 0 to 1.
double share_of(const Torus& torus, std::span<const Layer> layers, Folds folds) {
  const double reducing = torus.of_network(Way::ring, gradient_bytes(layers));
  return reducing / (reducing + compute_time_of(layers, folds).total());
}

using IterationTime = std::function<double(std::span<const Layer>, Way)>;

struct Gain {
  const DeepNetwork* network = nullptr;
  double times = 0; // by which iterations are shorter
};

std::vector<Gain> gains_of(Way slow, Way fast, const IterationTime& iteration) {
  std::vector<Gain> gains;
  for (const DeepNetwork& network : deep_networks()) {
    const std::vector<Layer> layers = network.layers();
    gains.push_back({&network, iteration(layers, slow) / iteration(layers, fast)});
  }
  return gains;
}

/// The largest gain of a kind of networks, in percent above 1.
double most_of(DeepNetwork::Kind kind, const std::vector<Gain>& gains) {
  double most = 1;
  for (const Gain& gain : gains) {
    most = gain.network->kind == kind ? std::max(most, gain.times) : most;
  }
  return 100 * (most - 1);
}

/// What a figure says of the networks that communicate most.
enum class Claim : std::uint8_t { at_most, of_each };

std::string over(Way slow, Way fast) {
  return fmt::format("{} over {}", multitree::name_of(slow), multitree::name_of(fast));
}

void give_gains(const std::vector<Gain>& gains, const std::string& name, Folds folds, Claim claim,
                Results& results) {
  using Kind = DeepNetwork::Kind;
  results.value(fmt::format("most.{}.computing.{}", name, name_of(folds)),
                most_of(Kind::computing, gains));
  if (claim == Claim::at_most) {
    results.value(fmt::format("most.{}.communicating.{}", name, name_of(folds)),
                  most_of(Kind::communicating, gains));
  }
  for (const Gain& gain : gains) {
    if (claim == Claim::of_each && gain.network->kind == Kind::communicating) {
      results.value(fmt::format("{}.{}.{}", name, gain.network->name, name_of(folds)), gain.times);
    }
    if (folds == Folds::back_to_back) {
      results.point("gain", name, mebibytes(gradient_bytes(gain.network->layers())), gain.times);
    }
  }
}

void give_all_gains(Folds folds, Claim claim, const IterationTime& iteration, Results& results) {
  for (const Way fast : kMultitrees) {
    for (const Way slow : kSlowWays) {
      give_gains(gains_of(slow, fast, iteration), over(slow, fast), folds, claim, results);
    }
  }
}

/// Compares the compute model with the authors' program.
void give_cycles(Folds folds, Results& results) {
  for (const DeepNetwork& network : deep_networks()) {
    LayerCycles sum;
    for (const Layer& layer : network.layers()) {
      const LayerCycles cycles = cycles_of(layer, folds);
      sum.forward += cycles.forward;
      sum.backward += cycles.backward;
    }
    const std::string name = fmt::format("{}.{}", network.name, name_of(folds));
    results.value("Mcycles forward." + name, static_cast<double>(sum.forward) / 1e6);
    results.value("Mcycles backward." + name, static_cast<double>(sum.backward) / 1e6);
  }
}

/// Shares of communication with RING, and their range without AlexNet, which §VI-C excludes.
void give_shares(const Settings& settings, Folds folds, Results& results) {
  const Torus torus(settings.mutation);
  double least = 1;
  double most = 0;
  for (const DeepNetwork& network : deep_networks()) {
    const std::vector<Layer> layers = network.layers();
    if (settings.effort == Effort::quick && gradient_bytes(layers) > kLargestInQuick) {
      continue;
    }
    const double share = share_of(torus, layers, folds);
    results.value(fmt::format("share.{}.{}", network.name, name_of(folds)), share);
    results.point("share", std::string(name_of(folds)), mebibytes(gradient_bytes(layers)), share);
    if (network.name != "AlexNet") {
      least = std::min(least, share);
      most = std::max(most, share);
    }
  }
  if (settings.effort == Effort::full) {
    results.value(fmt::format("least share.{}", name_of(folds)), least);
    results.value(fmt::format("most share.{}", name_of(folds)), most);
  }
}

} // namespace

void gradients(const Settings& settings, Results& results) {
  if (settings.effort == Effort::quick) {
    return;
  }
  const Torus torus(settings.mutation);
  const auto count = static_cast<double>(deep_networks().size());
  for (const Way fast : kMultitrees) {
    for (const Way slow : kSlowWays) {
      const std::string name = over(slow, fast);
      double sum = 0;
      for (const DeepNetwork& network : deep_networks()) {
        const std::uint64_t bytes = gradient_bytes(network.layers());
        const double ratio = torus.of_network(slow, bytes) / torus.of_network(fast, bytes);
        sum += ratio;
        results.value(fmt::format("{}.{}", name, network.name), ratio);
        results.point("gain", name, mebibytes(bytes), ratio);
      }
      results.value(name + ".mean", sum / count);
      const std::uint64_t least = gradient_bytes(deep_networks().front().layers());
      results.value(name + ".in step",
                    torus.us(slow, least) / torus.us(fast, least, Order::in_step));
    }
  }
}

void training(const Settings& settings, Results& results) {
  const Torus torus(settings.mutation);
  for (const Folds folds : {Folds::back_to_back, Folds::one_by_one}) {
    give_cycles(folds, results);
    give_shares(settings, folds, results);
    results.value(fmt::format("share.AlexNet of its paper.{}", name_of(folds)),
                  share_of(torus, alexnet_of_its_paper(), folds));
    if (settings.effort == Effort::full) {
      const auto iteration = [&](std::span<const Layer> layers, Way way) {
        return compute_time_of(layers, folds).total() +
               torus.of_network(way, gradient_bytes(layers));
      };
      give_all_gains(folds, Claim::at_most, iteration, results);
    }
  }
}

void overlapped_training(const Settings& settings, Results& results) {
  if (settings.effort == Effort::quick) {
    return;
  }
  const Torus torus(settings.mutation);
  for (const Folds folds : {Folds::back_to_back, Folds::one_by_one}) {
    const auto iteration = [&](std::span<const Layer> layers, Way way) {
      return overlapped_iteration(layers, compute_time_of(layers, folds),
                                  [&](std::uint64_t bytes) { return torus.of_layer(way, bytes); });
    };
    give_all_gains(folds, Claim::of_each, iteration, results);
  }
}

} // namespace weir::figures::multitree
