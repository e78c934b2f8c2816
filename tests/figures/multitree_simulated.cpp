// SPDX-License-Identifier: BSD-3-Clause
#include "multitree_simulated.hpp"

#include "inputs.hpp"
#include "multitree_networks.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace weir::figures::multitree {
namespace {

constexpr std::array kThreeSizes{32 * kKib, 256 * kKib, kMib};
// On switch networks; grids take five times as long to simulate.
constexpr std::uint64_t kLargest = 16 * kMib;
constexpr std::uint64_t kLargestInPlots = kMib;
constexpr std::uint32_t kLargestTorus = 16; // nodes on a side, Fig. 10

std::string size_name(std::uint64_t bytes) {
  return bytes < kMib ? fmt::format("{} KiB", bytes / kKib) : fmt::format("{} MiB", bytes / kMib);
}

/// The algorithms that the paper compares on a network.
std::vector<Way> ways_on(const Network& network) {
  switch (network.shape) {
  case Shape::torus:
  case Shape::mesh:
    return {Way::ring, Way::double_tree, Way::ring_2d, Way::multitree, Way::message};
  case Shape::bigraph:
    return {Way::ring, Way::double_tree, Way::hdrm, Way::multitree, Way::message};
  default:
    return {Way::ring, Way::double_tree, Way::multitree, Way::message};
  }
}

/// Runs of one figure, all with the same mutation.
class Runs {
 public:
  explicit Runs(Mutation mutation) : mutation_(mutation) {}

  double us(const Network& network, Way way, std::uint64_t bytes, Order order = Order::as_published,
            Reduction reduction = Reduction::timed) const {
    return microseconds({network, way, bytes, order, mutation_, reduction});
  }

  double ratio(const Network& network, Way slow, Way fast, std::uint64_t bytes,
               Order order = Order::as_published) const {
    return us(network, slow, bytes, order) / us(network, fast, bytes, order);
  }

 private:
  Mutation mutation_;
};

/// GB/s by size, as in Fig. 9.
void plot_bandwidth(const Runs& runs, const Network& network, Results& results) {
  for (const Way way : ways_on(network)) {
    for (std::uint64_t bytes = 32 * kKib; bytes <= kLargestInPlots; bytes *= 2) {
      const double kilobytes_per_ms = static_cast<double>(bytes) / runs.us(network, way, bytes);
      results.point("bandwidth", std::string(name_of(way)), static_cast<double>(bytes / kKib),
                    kilobytes_per_ms / 1000);
    }
  }
}

/// Fig. 10: the size of the tensor grows with the torus.
std::uint64_t scaled_size(std::uint32_t side) {
  return std::uint64_t{kScalingKibPerNode} * kKib * side * side;
}

/// The size in KiB at which `slow` stops being the faster one, between two doublings; the last size
/// when it never does.
double break_even_kib(const Runs& runs, const Network& network) {
  double before = 0;
  for (std::uint64_t bytes = 32 * kKib; bytes <= 4 * kMib; bytes *= 2) {
    const double lead = std::log(runs.ratio(network, Way::ring, Way::double_tree, bytes));
    if (lead <= 0) {
      const double share = before / (before - lead); // of the doubling
      return static_cast<double>(bytes / kKib) / 2 * std::exp2(share);
    }
    before = lead;
  }
  return 4 * static_cast<double>(kMib / kKib);
}

} // namespace

void compare_with_oracle(const Network& network, const Settings& settings, Results& results) {
  const Runs runs(settings.mutation);
  for (const Way way : ways_on(network)) {
    for (const std::uint64_t bytes : kThreeSizes) {
      // Their simulator was not run for that, and it takes the longest.
      if (network != kMesh8 || bytes < kMib) {
        results.value(fmt::format("{}.{}", name_of(way), size_name(bytes)),
                      runs.us(network, way, bytes));
      }
    }
  }
  if (std::ranges::find(kSwitched, network) != kSwitched.end()) {
    results.value("DBTREE.1 MiB.with credits", microseconds({.network = network,
                                                             .way = Way::double_tree,
                                                             .bytes = kMib,
                                                             .mutation = settings.mutation,
                                                             .buffers = Buffers::with_credits}));
  }
  if (network.shape == Shape::torus) {
    results.value("2D-RING.1 MiB.by root", microseconds({.network = network,
                                                         .way = Way::ring_2d,
                                                         .bytes = kMib,
                                                         .mutation = settings.mutation,
                                                         .flows = FlowNumbers::by_root}));
  }
  if (settings.effort == Effort::full) {
    plot_bandwidth(runs, network, results);
  }
}

void best_on_tori(const Settings& settings, Results& results) {
  const Runs runs(settings.mutation);
  for (const Network& network : {kTorus4, kTorus8}) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::uint64_t bytes : kThreeSizes) {
      for (const Way other : {Way::ring, Way::double_tree, Way::ring_2d}) {
        for (const Way best : {Way::multitree, Way::message}) {
          least = std::min(least, runs.ratio(network, other, best, bytes));
        }
      }
    }
    results.value("least gain." + name_of(network), least);
  }
}

void worst_on_grids(const Settings& settings, Results& results) {
  const Runs runs(settings.mutation);
  for (const Network& network : kGrids) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::uint64_t bytes : {256 * kKib, network == kMesh8 ? 256 * kKib : kMib}) {
      for (const Way other : {Way::ring, Way::ring_2d, Way::multitree, Way::message}) {
        least = std::min(least, runs.ratio(network, Way::double_tree, other, bytes));
      }
    }
    results.value("least loss." + name_of(network), least);
  }
  results.value("DBTREE over RING.torus 8.32 KiB",
                runs.ratio(kTorus8, Way::double_tree, Way::ring, 32 * kKib));
}

void rings_on_meshes(const Settings& settings, Results& results) {
  const Runs runs(settings.mutation);
  for (const Network& network : {kMesh4, kMesh8}) {
    for (const std::uint64_t bytes : kThreeSizes) {
      results.value(fmt::format("2D-RING over RING.{}.{}", name_of(network), size_name(bytes)),
                    runs.ratio(network, Way::ring_2d, Way::ring, bytes));
    }
  }
}

void over_ring(const Settings& settings, Results& results) {
  const Runs runs(settings.mutation);
  for (const Network& network : kSwitched) {
    results.value(fmt::format("{}.32 KiB", name_of(network)),
                  runs.ratio(network, Way::ring, Way::multitree, 32 * kKib));
    if (settings.effort == Effort::full) {
      results.value(fmt::format("{}.16 MiB", name_of(network)),
                    runs.ratio(network, Way::ring, Way::multitree, kLargest));
    }
  }
}

void break_even(const Settings& settings, Results& results) {
  const Runs runs(settings.mutation);
  for (const Network& network : kSwitched) {
    results.value("KiB." + name_of(network), break_even_kib(runs, network));
  }
}

void over_hdrm(const Settings& settings, Results& results) {
  const Runs runs(settings.mutation);
  for (const Network& network : {kBiGraph32, kBiGraph64}) {
    results.value(fmt::format("HDRM over MULTITREE.{}.32 KiB", name_of(network)),
                  runs.ratio(network, Way::hdrm, Way::multitree, 32 * kKib));
    if (settings.effort == Effort::full) {
      results.value(fmt::format("HDRM over MULTITREE.{}.16 MiB", name_of(network)),
                    runs.ratio(network, Way::hdrm, Way::multitree, kLargest));
      results.value(fmt::format("MULTITREE over MULTITREEMSG.{}.16 MiB", name_of(network)),
                    runs.ratio(network, Way::multitree, Way::message, kLargest));
    }
  }
}

namespace {

double scaled_us(const Settings& settings, std::uint32_t side, Way way) {
  Run run{{Shape::torus, side}, way, scaled_size(side)};
  run.mutation = settings.mutation;
  run.packets_at_once = way == Way::ring ? kRingWave : 1;
  return microseconds(run);
}

/// The run that the formula of perfect lockstep is compared with: links send the schedule's earlier
/// step first, and nodes add in no time. The steps of rings never meet: rings keep the published
/// order.
double in_step_us(const Settings& settings, std::uint32_t side, Way way) {
  Run run{{Shape::torus, side}, way, scaled_size(4)};
  run.mutation = settings.mutation;
  run.order = way == Way::message ? Order::in_step : Order::as_published;
  run.reduction = Reduction::free;
  return microseconds(run);
}

constexpr std::array kScaledWays{Way::ring, Way::ring_2d, Way::message};

void scale_to(const Settings& settings, std::uint32_t side, Results& results) {
  for (const Way other : {Way::ring, Way::ring_2d}) {
    const std::string name = fmt::format("{} over MULTITREEMSG.{}", name_of(other), side * side);
    results.value(name, scaled_us(settings, side, other) / scaled_us(settings, side, Way::message));
    if (side == 4 || side == 8 || side == 16) {
      results.value(name + ".in step",
                    in_step_us(settings, side, other) / in_step_us(settings, side, Way::message));
    }
  }
  for (const Way way : kScaledWays) {
    const double us = scaled_us(settings, side, way);
    results.point("scaling", std::string(name_of(way)), side * side, us / 1000);
    if (side != 4) {
      results.value(fmt::format("linear.{}.{}", name_of(way), side * side),
                    us * 16 / (side * side * scaled_us(settings, 4, way)));
    }
  }
}

} // namespace

void scaling(const Settings& settings, Results& results) {
  Run by_packets{kTorus4, Way::ring, scaled_size(4)};
  by_packets.mutation = settings.mutation;
  results.value("RING in waves over by packets",
                scaled_us(settings, 4, Way::ring) / microseconds(by_packets));
  const std::uint32_t last = settings.effort == Effort::full ? kLargestTorus : 4;
  for (std::uint32_t side = 4; side <= last; side += 2) {
    scale_to(settings, side, results);
  }
}

} // namespace weir::figures::multitree
