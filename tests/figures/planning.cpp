// SPDX-License-Identifier: BSD-3-Clause

/// Figures of no paper: questions of a person who plans a fabric.

#include "figure.hpp"
#include "inputs.hpp"
#include "netsim/schedule_run.hpp"
#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/generators.hpp"
#include "planning_sparse.hpp"
#include "switch_run.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace weir::figures::planning {
namespace {

using netsim::Mending;

constexpr std::uint64_t kGigabit = 1'000'000'000;
constexpr plan::LinkTraits kHostLink{kHostGigabits * kGigabit, kCableNs};

plan::Topology racks(std::uint32_t leaves, std::uint32_t hosts, std::uint32_t spines,
                     std::uint64_t uplink_gigabits) {
  return plan::make_spine_leaf({.leaves = leaves,
                                .nodes_per_leaf = hosts,
                                .spines = spines,
                                .host = kHostLink,
                                .uplink = {uplink_gigabits * kGigabit, kCableNs}});
}

/// Seconds of a host's link for the tensor's frames: no all-reduce is faster.
double bound(std::uint64_t bytes) {
  return kBitsPerByte * wire_bytes(bytes, {}) / static_cast<double>(kHostLink.bits_per_second);
}

double through_rings(const plan::Topology& topology, std::uint64_t bytes, std::uint32_t rings) {
  const plan::FabricPlan plan = plan::plan_fabric(topology, plan::every_node(topology), rings);
  return seconds_of(netsim::run_weir(topology, plan, bytes, {}).duration);
}

/// A plan of hosts only, in frames like Weir's.
double by_plan(const plan::Topology& topology, std::uint64_t bytes, plan::Algorithm algorithm) {
  const netsim::HostTraits host;
  netsim::ScheduleSettings settings;
  settings.framing = {
      .payload_bytes = host.mtu, .header_bytes = host.frame_overhead, .unit_bytes = 1};
  const plan::Plan plan = plan::make_plan(topology, algorithm);
  return seconds_of(netsim::run_schedule(topology, plan.schedule, bytes, settings).duration);
}

/// PL1: uplinks of half of a host's rate to each of 4 spines; rings over trees that share none.
void disjoint_trees(const Settings& settings, Results& results) {
  const plan::Topology topology = mutated(racks(4, 8, 4, kHostGigabits / 2), settings.mutation);
  const std::uint64_t last = settings.effort == Effort::full ? 64 * kMib : 4 * kMib;
  for (std::uint64_t bytes = 64 * kKib; bytes <= last; bytes *= 4) {
    const auto give = [&](const std::string& name, double seconds) {
      results.point("bandwidth", name, static_cast<double>(bytes / kKib),
                    static_cast<double>(bytes) / seconds / 1e9);
      if (bytes == 4 * kMib) {
        results.value(name, seconds / bound(bytes));
      }
    };
    for (const std::uint32_t rings : {1U, 2U, 4U}) {
      give(fmt::format("Weir, {} ring{}", rings, rings == 1 ? "" : "s"),
           through_rings(topology, bytes, rings));
    }
    give("ring of hosts", seconds_of(by_hosts(topology, bytes, {}).duration));
    give("MULTITREE of hosts", by_plan(topology, bytes, plan::Algorithm::multitree));
    give("two binary trees of hosts",
         by_plan(topology, bytes, plan::Algorithm::double_binary_tree));
  }
}

netsim::WeirSettings lossy(double share, Mending mending, std::uint64_t seed) {
  netsim::WeirSettings settings;
  settings.host.choice = netsim::HostTraits::Choice::by_link;
  settings.loss = share;
  settings.mending = mending;
  settings.seed = seed;
  return settings;
}

/// Of runs that lose other frames each: a lost frame that no other follows costs a whole timer, and
/// only some runs lose one.
template <class Run>
double median_seconds(const Run& run) {
  std::array<double, 5> seconds{};
  for (std::size_t seed = 0; seed < seconds.size(); ++seed) {
    seconds[seed] = seconds_of(run(seed + 1).duration);
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

struct LossRun {
  std::uint32_t leaves = 0; // number of leaves; each has as many hosts
  std::uint64_t bytes = 0;
  double loss = 0;
};

/// PL2: by ring, through one switch of protocol 1, and through a tree that repairs losses itself.
void lose(const LossRun& run, Results& results) {
  const std::uint32_t hosts = run.leaves * run.leaves;
  const plan::Topology tree = racks(run.leaves, run.leaves, 1, kHostGigabits);
  const auto give = [&](const std::string& name, const auto& with_seed) {
    const double times = median_seconds(with_seed) / bound(run.bytes);
    results.value(fmt::format("{}.{}.{:.0e}", name, hosts, run.loss), times);
    results.point(fmt::format("loss {}", hosts), name, 1e6 * run.loss, times);
  };
  give("ring", [&](std::uint64_t seed) {
    return by_hosts(tree, run.bytes, lossy(run.loss, Mending::none, seed));
  });
  give("Weir, mending tree", [&](std::uint64_t seed) {
    return through_switches(tree, run.bytes, lossy(run.loss, Mending::from_cache, seed));
  });
  const plan::Topology star = plan::make_star(hosts, kHostLink);
  give("Weir, one switch", [&](std::uint64_t seed) {
    return through_switches(star, run.bytes, lossy(run.loss, Mending::none, seed));
  });
}

void losses(const Settings& settings, Results& results) {
  for (const double loss : {1e-6, 1e-5, 1e-4, 1e-3}) {
    lose({8, kMib, loss}, results);
    if (settings.effort == Effort::full) {
      lose({16, kMib / 4, loss}, results);
      lose({32, kMib / 4, loss}, results);
    }
  }
}

/// PL3: a fold in rank order begins when the last packet has come; a fold on arrival then has only
/// one step left.
void fold_order(const Settings& /*settings*/, Results& results) {
  constexpr std::uint64_t kBytes = 4 * kMib;
  for (const std::uint32_t hosts : {8U, 64U, 256U}) {
    const plan::Topology topology = plan::make_star(hosts, kHostLink);
    netsim::WeirSettings on_arrival;
    on_arrival.costs.latency = kFoldNs * netsim::kNanosecond;
    netsim::WeirSettings in_order;
    in_order.costs.latency = (hosts - 1) * kFoldNs * netsim::kNanosecond;
    const double early = seconds_of(through_switches(topology, kBytes, on_arrival).duration);
    const double late = seconds_of(through_switches(topology, kBytes, in_order).duration);
    results.value(fmt::format("time.{}", hosts), late / early);
    const double slots = 2.0 * in_order.host.window * in_order.host.message_bytes; // protocol §7
    results.value(fmt::format("MiB on arrival.{}", hosts), slots / kMib);
    results.value(fmt::format("MiB in order.{}", hosts), slots * (hosts - 1) / kMib);
  }
}

/// PL5: 8 racks of 8 hosts whose uplinks together carry 1 to 1/16 of the hosts' rate.
void oversubscription(const Settings& settings, Results& results) {
  constexpr std::uint64_t kBytes = 2 * kMib;
  for (const std::uint64_t uplink : {800U, 400U, 200U, 100U, 50U}) {
    const plan::Topology topology = mutated(racks(8, 8, 1, uplink), settings.mutation);
    std::vector<plan::VertexId> shuffled = plan::every_node(topology);
    std::mt19937 random(1); // NOLINT(bugprone-random-generator-seed) the same on every machine
    for (std::size_t left = shuffled.size(); left > 1; --left) {
      std::swap(shuffled[left - 1], shuffled[random() % left]);
    }
    const double ratio = 800.0 / static_cast<double>(uplink);
    const auto give = [&](const std::string& name, double seconds) {
      results.value(fmt::format("{}.{}", name, ratio), seconds / bound(kBytes));
      results.point("oversubscription", name, ratio, seconds / bound(kBytes));
    };
    give("Weir", through_rings(topology, kBytes, 1));
    give("ring, rack by rack", seconds_of(by_hosts(topology, kBytes, {}).duration));
    give("ring, any order",
         seconds_of(netsim::run_host_ring(topology, shuffled, kBytes, {}).duration));
    give("MULTITREE of hosts", by_plan(topology, kBytes, plan::Algorithm::multitree));
  }
}

constexpr std::array kFigures{
    Figure{"PL1", disjoint_trees}, Figure{"PL2", losses},           Figure{"PL3", fold_order},
    Figure{"PL4", sparse_traffic}, Figure{"PL5", oversubscription},
};

} // namespace
} // namespace weir::figures::planning

std::span<const weir::figures::Figure> weir::figures::planning_figures() {
  return planning::kFigures;
}
