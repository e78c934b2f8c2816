// SPDX-License-Identifier: BSD-3-Clause
#include "klenk_simulated.hpp"

#include "inputs.hpp"
#include "netsim/region_run.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace weir::figures::klenk {
namespace {

using Method = netsim::RegionSettings::Method;

/// A step of the software ring (§III) but for its data: data, fence and flag are three hops and two
/// passes through a GPU's memory. What fences cost the paper does not say.
constexpr double kStepNs = 3 * kHopNs + 2 * kMemoryNs;

/// A step later: one GPU begins when the ring's second step would.
netsim::RegionNetwork mutated(netsim::RegionNetwork network, Mutation mutation) {
  if (mutation == Mutation::link_slower) {
    network.slow_gpu = 0;
  }
  if (mutation == Mutation::step_later) {
    network.late_gpu = 0;
    network.late_by = static_cast<netsim::Time>(kStepNs) * netsim::kNanosecond;
  }
  return network;
}

/// §VI-B: push with tables of 256 bytes a port and 16 waves of 8 kB; pull with 4 kB and 4 waves.
netsim::RegionSettings dgx2_settings(Method method) {
  netsim::RegionSettings settings{.method = method, .gpus = kGpus};
  settings.table_bytes = method == Method::push ? kPushTableBytes : kPullTableBytes;
  settings.waves = method == Method::push ? kPushWaves : kPullWaves;
  return settings;
}

/// §VI-C: 64 waves for push, 16 for pull with 1 kB a port.
netsim::RegionSettings fat_tree_settings(Method method, std::uint32_t gpus) {
  netsim::RegionSettings settings{.method = method, .gpus = gpus};
  settings.table_bytes = method == Method::push ? kPushTableBytes : kFatTreePullTableBytes;
  settings.waves = method == Method::push ? kFatTreePushWaves : kFatTreePullWaves;
  return settings;
}

double nanoseconds(netsim::Time time) {
  return static_cast<double>(time) / static_cast<double>(netsim::kNanosecond);
}

/// GB/s of the tensor: bytes a nanosecond.
double bandwidth(const netsim::RegionNetwork& network, std::uint64_t bytes,
                 const netsim::RegionSettings& settings) {
  return static_cast<double>(bytes) /
         nanoseconds(netsim::run_region(network, bytes, settings).duration);
}

/// The software ring of §III: steps of m/p.
double ring_nanoseconds(double bytes, double gpus) {
  constexpr double kRate =
      kPortsPerGpu * kPortBytesPerNs * kPayloadBytes / (kPayloadBytes + 2.0 * kHeaderBytes);
  return 2 * (gpus - 1) * (bytes / (gpus * kRate) + kStepNs);
}

struct Curve {
  std::string_view name;
  Method method;
  std::uint32_t table_bytes = 0; // a port; 0: what the paper has for the method
};

constexpr std::array kCurves{
    Curve{"push", Method::push},
    Curve{"pull", Method::pull},
    Curve{"pull with synchronization", Method::pull_synchronised},
    Curve{"push with 1 KiB", Method::push, kAmpleTableBytes},
};

std::string size_name(std::uint64_t bytes) {
  return bytes < kMib ? fmt::format("{} KiB", bytes / kKib) : fmt::format("{} MiB", bytes / kMib);
}

/// Waves, doubling from 1, from which more of them bring less than 5 %.
double knee(const netsim::RegionNetwork& network, std::uint64_t bytes,
            netsim::RegionSettings settings, std::uint32_t most, const std::string& series,
            Results& results) {
  constexpr double kEnough = 0.95;
  std::vector<std::pair<std::uint32_t, double>> rates;
  double best = 0;
  for (settings.waves = 1; settings.waves <= most; settings.waves *= 2) {
    rates.emplace_back(settings.waves, bandwidth(network, bytes, settings));
    best = std::max(best, rates.back().second);
    results.point("waves", series, settings.waves, rates.back().second);
  }
  const auto found =
      std::ranges::find_if(rates, [=](const auto& one) { return one.second >= kEnough * best; });
  return found->first;
}

} // namespace

void bandwidth_of_16(const Settings& settings, Results& results) {
  const netsim::RegionNetwork network = mutated(netsim::dgx2_network(), settings.mutation);
  std::vector<std::uint64_t> sizes{32 * kKib, 64 * kKib, 256 * kKib, kMib, 8 * kMib};
  if (settings.effort == Effort::full) {
    sizes.push_back(64 * kMib);
  }
  for (const std::uint64_t bytes : sizes) {
    const auto size = static_cast<double>(bytes);
    const double ring = size / ring_nanoseconds(size, kGpus);
    results.point("bandwidth", "ring", size / kKib, ring);
    std::vector<double> rates; // by curve
    for (const Curve& curve : kCurves) {
      netsim::RegionSettings region = dgx2_settings(curve.method);
      if (curve.table_bytes != 0) {
        region.table_bytes = curve.table_bytes;
      }
      const double rate = bandwidth(network, bytes, region);
      results.value(fmt::format("{}.{}", curve.name, size_name(bytes)), rate);
      results.value(fmt::format("{} over ring.{}", curve.name, size_name(bytes)), rate / ring);
      results.point("bandwidth", std::string(curve.name), size / kKib, rate);
      results.point("gain", std::string(curve.name), size / kKib, rate / ring);
      rates.push_back(rate);
    }
    if (bytes == 32 * kKib) {
      results.value("synchronization", rates[1] / rates[2]);
    }
    if (bytes == 8 * kMib) {
      results.value("pull over push", rates[1] / rates[0]);
      results.value("pull over push with 1 KiB", rates[1] / rates[3]);
    }
  }
}

void bandwidth_of_128(const Settings& settings, Results& results) {
  if (settings.effort == Effort::quick) {
    return;
  }
  const netsim::RegionNetwork network = mutated(netsim::klenk_fat_tree(), settings.mutation);
  for (const std::uint64_t bytes : {2 * kMib, 8 * kMib}) {
    for (const std::uint32_t gpus : {64U, 128U}) {
      for (const Curve& curve : {kCurves[0], kCurves[1]}) {
        const double rate = bandwidth(network, bytes, fat_tree_settings(curve.method, gpus));
        results.value(fmt::format("{}.{}.{}", curve.name, gpus, size_name(bytes)), rate);
        results.point("bandwidth", fmt::format("{}, {}", curve.name, size_name(bytes)), gpus, rate);
      }
    }
  }
}

void table_without_waves(const Settings& settings, Results& results) {
  const netsim::RegionNetwork network = mutated(netsim::dgx2_network(), settings.mutation);
  for (const Curve& curve : {kCurves[0], kCurves[1]}) {
    netsim::RegionSettings region = dgx2_settings(curve.method);
    region.table_bytes = kPushTableBytes;
    const double limited = bandwidth(network, 2 * kMib, region);
    region.waves = 0;
    for (std::uint32_t bytes = kPushTableBytes; bytes <= 64 * kKib; bytes *= 4) {
      region.table_bytes = bytes;
      const double rate = bandwidth(network, 2 * kMib, region);
      results.point("tables", std::string(curve.name), bytes, rate);
      if (bytes == kPushTableBytes) {
        results.value(fmt::format("{} without waves", curve.name), rate / limited);
      }
    }
  }
}

void waves(const Settings& settings, Results& results) {
  constexpr std::uint32_t kMost = 64;
  const netsim::RegionNetwork dgx2 = mutated(netsim::dgx2_network(), settings.mutation);
  results.value("knee.push",
                knee(dgx2, 2 * kMib, dgx2_settings(Method::push), kMost, "push, DGX-2", results));
  results.value("knee.pull",
                knee(dgx2, 2 * kMib, dgx2_settings(Method::pull), kMost, "pull, DGX-2", results));
  if (settings.effort == Effort::full) {
    const netsim::RegionNetwork tree = mutated(netsim::klenk_fat_tree(), settings.mutation);
    results.value("knee.push.fat tree", knee(tree, 2 * kMib, fat_tree_settings(Method::push, 128),
                                             4 * kMost, "push, fat tree", results));
  }
}

void packet_latency(const Settings& settings, Results& results) {
  using Order = netsim::RegionSettings::Order;
  const netsim::RegionNetwork network = mutated(netsim::dgx2_network(), settings.mutation);
  for (const Order order : {Order::arbitrary, Order::by_address}) {
    const std::string_view name = order == Order::arbitrary ? "an order of its own" : "by address";
    netsim::RegionSettings region = dgx2_settings(Method::push);
    region.order = order;
    const netsim::RegionResult waves = netsim::run_region(network, 8 * kMib, region);
    region.waves = 0;
    const netsim::RegionResult free = netsim::run_region(network, 8 * kMib, region);
    results.value(fmt::format("fall.{}", name),
                  1 - nanoseconds(waves.mean_latency) / nanoseconds(free.mean_latency));
    results.value(fmt::format("µs with waves.{}", name), nanoseconds(waves.mean_latency) / 1000);
    results.value(fmt::format("µs without.{}", name), nanoseconds(free.mean_latency) / 1000);
  }
}

} // namespace weir::figures::klenk
