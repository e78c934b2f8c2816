// SPDX-License-Identifier: BSD-3-Clause
#include "plan_compare.hpp"

#include "netsim/schedule_run.hpp"
#include "netsim/weir_run.hpp"
#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "text/quantity.hpp"
#include "time_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace weir::app {
namespace {

constexpr std::string_view kWeir = "weir";
constexpr std::uint32_t kFramesAChannel =
    18; // as 318 flits hold packets of 17 (ISCA'21, Table III)
constexpr std::uint32_t kCacheLine = 64;
// Most packets of a run over FIFOs; larger runs simulate waves.
constexpr std::uint64_t kMostPackets = 1U << 21;

constexpr std::array kAlgorithms{
    plan::Algorithm::ring,    plan::Algorithm::ring_across, plan::Algorithm::double_binary_tree,
    plan::Algorithm::ring_2d, plan::Algorithm::hdrm,        plan::Algorithm::multitree};

/// bit/s of the slowest participant's sending.
double slowest_host(const plan::Topology& topology, std::span<const plan::VertexId> participants) {
  double slowest = 0;
  for (const plan::VertexId node : participants) {
    double rate = 0;
    for (const plan::LinkId link : topology.outgoing(node)) {
      rate += static_cast<double>(topology.link(link).traits.bits_per_second);
    }
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  return slowest;
}

/// The least time in microseconds for this kind of all-reduce. A host sends all of the tensor to a
/// switch that reduces, or 2(N-1)/N of it to other hosts (Patarasuk and Yuan, JPDC 69, 2009).
double bound(const plan::Topology& topology, std::span<const plan::VertexId> participants,
             std::string_view algorithm, std::uint64_t bytes) {
  const auto nodes = static_cast<double>(participants.size());
  const double shares = algorithm == kWeir ? 1 : 2 * (nodes - 1) / nodes;
  return shares * static_cast<double>(bytes) * 8 * 1e6 / slowest_host(topology, participants);
}

void note_links(Comparison& comparison, std::span<const netsim::LinkUse> links,
                netsim::Time duration) {
  const auto busiest = std::ranges::max_element(links, {}, &netsim::LinkUse::busy);
  if (busiest != links.end() && duration != 0) {
    comparison.busiest = static_cast<plan::LinkId>(busiest - links.begin());
    comparison.busy = static_cast<double>(busiest->busy) / static_cast<double>(duration);
  }
}

/// RoCEv2 frames. A grid's routers have virtual channels, Ethernet switches have queues.
netsim::ScheduleSettings settings_for(const plan::Topology& topology, const plan::Plan& plan,
                                      std::uint64_t bytes, const ComparisonSettings& wanted) {
  const OwnCosts& costs = wanted.costs;
  using Traits = netsim::NodeTraits;
  netsim::ScheduleSettings settings;
  settings.framing.payload_bytes = wanted.ring_numbers.mtu;
  settings.framing.header_bytes = netsim::HostTraits{}.frame_overhead;
  settings.framing.unit_bytes = 4;
  // A channel takes no message before its last has left. Otherwise one channel would get all.
  settings.nodes.buffered_packets = 0;
  settings.nodes.interface_latency = costs.host_latency_ns * netsim::kNanosecond;
  if (costs.host_addition != 0) {
    settings.nodes.reduction_bytes = kCacheLine;
    settings.nodes.reduction_time = netsim::transmission_time(kCacheLine, costs.host_addition);
  }
  if (plan.algorithm == plan::Algorithm::multitree) {
    settings.nodes.lockstep = Traits::Lockstep::estimated;
    settings.nodes.step_start = Traits::StepStart::all_channels;
  }
  if (topology.grid) {
    settings.virtual_channels =
        netsim::VirtualChannels{.bytes = kFramesAChannel * (settings.framing.payload_bytes +
                                                            settings.framing.header_bytes)};
    return settings;
  }
  const std::uint64_t packets =
      plan.schedule.messages.size() *
      settings.framing.packets_of(bytes / std::max<std::uint64_t>(1, plan.schedule.chunk_count));
  settings.framing.packets_at_once = static_cast<std::uint32_t>(packets / kMostPackets + 1);
  return settings;
}

Comparison run_plan(const plan::Topology& topology, const plan::Plan& plan, std::uint64_t bytes,
                    const ComparisonSettings& wanted) {
  const netsim::ScheduleResult result = netsim::run_schedule(
      topology, plan.schedule, bytes, settings_for(topology, plan, bytes, wanted));
  Comparison comparison{std::string(plan::name_of(plan.algorithm)), bytes,
                        netsim::to_us(result.duration)};
  note_links(comparison, result.links, result.duration);
  return comparison;
}

Comparison run_weir(const plan::Topology& topology, const plan::FabricPlan& fabric,
                    std::uint64_t bytes, const ComparisonSettings& wanted) {
  const OwnCosts& costs = wanted.costs;
  netsim::WeirSettings settings;
  settings.host.latency = costs.host_latency_ns * netsim::kNanosecond;
  settings.costs.packet_time = costs.switch_packet_ns * netsim::kNanosecond;
  settings.costs.latency = costs.switch_latency_ns * netsim::kNanosecond;
  settings.costs.lcores = costs.switch_lcores;
  settings.host.mtu = wanted.ring_numbers.mtu;
  settings.host.message_bytes = wanted.ring_numbers.message_bytes;
  settings.host.window = wanted.ring_numbers.window;
  settings.host.ack_timeout = 67'000 * netsim::kMicrosecond; // weir-worker's
  const netsim::WeirResult result = netsim::run_weir(topology, fabric, bytes, settings);
  Comparison comparison{std::string(kWeir), bytes, netsim::to_us(result.duration)};
  note_links(comparison, result.links, result.duration);
  return comparison;
}

std::vector<std::uint64_t> sizes_of(const ComparisonSettings& settings) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = settings.least_bytes; bytes <= settings.most_bytes; bytes *= 2) {
    sizes.push_back(bytes);
  }
  return sizes;
}

/// The algorithms that can be used on this topology.
std::vector<plan::Algorithm> fitting(const plan::Topology& topology,
                                     std::span<const plan::VertexId> participants) {
  std::vector<plan::Algorithm> algorithms;
  std::ranges::copy_if(kAlgorithms, std::back_inserter(algorithms), [&](plan::Algorithm algorithm) {
    return plan::why_not(algorithm, topology, participants).empty();
  });
  return algorithms;
}

} // namespace

std::vector<Comparison> compare(const plan::Topology& topology,
                                std::span<const plan::VertexId> participants,
                                const ComparisonSettings& settings, const OnPiece& on_piece) {
  const std::vector<std::uint64_t> sizes = sizes_of(settings);
  const std::vector<plan::Algorithm> algorithms = fitting(topology, participants);
  const bool has_switches = !topology.is_direct();
  const std::size_t pieces = (1 + sizes.size()) * (algorithms.size() + (has_switches ? 1 : 0));
  std::vector<Comparison> comparisons;
  const auto add = [&](std::string_view name, std::uint64_t bytes, const auto& run) {
    on_piece(pieces, fmt::format("{} {}", name, text::size_text(bytes)));
    Comparison comparison = run();
    comparison.share = bound(topology, participants, name, bytes) / comparison.microseconds;
    comparisons.push_back(std::move(comparison));
  };
  for (const plan::Algorithm algorithm : algorithms) {
    on_piece(pieces, fmt::format("{}'s plan", plan::name_of(algorithm)));
    const plan::Plan made = plan::make_plan(topology, algorithm, participants);
    for (const std::uint64_t bytes : sizes) {
      add(plan::name_of(algorithm), bytes,
          [&] { return run_plan(topology, made, bytes, settings); });
    }
  }
  if (has_switches) {
    on_piece(pieces, fmt::format("{}'s plan", kWeir));
    const plan::FabricPlan fabric = plan::plan_fabric(topology, participants, settings.most_rings);
    for (const std::uint64_t bytes : sizes) {
      add(kWeir, bytes, [&] { return run_weir(topology, fabric, bytes, settings); });
    }
  }
  return comparisons;
}

std::string comparison_table(const plan::Topology& topology,
                             std::span<const Comparison> comparisons, const RingNumbers& numbers) {
  std::vector<Comparison> sorted(comparisons.begin(), comparisons.end());
  std::ranges::stable_sort(
      sorted, {}, [](const Comparison& one) { return std::pair(one.bytes, one.microseconds); });
  std::string out = fmt::format("{:>8}  {:12} {:>14} {:>12} {:>7}  {}\n", "size", "algorithm",
                                "time us", "Gbit/s", "share", "busiest link");
  for (const Comparison& one : sorted) {
    const plan::Link& link = topology.link(one.busiest);
    out +=
        fmt::format("{:>8}  {:12} {:>14.2f} {:>12.3f} {:>6.1f}%  {} -> {}, {:.0f} % of the time\n",
                    text::size_text(one.bytes), one.algorithm, one.microseconds,
                    static_cast<double>(one.bytes) * 8 / 1000 / one.microseconds, 100 * one.share,
                    topology.name(link.from), topology.name(link.to), 100 * one.busy);
  }
  return out +
         fmt::format("share: of what the slowest host's links allow: 2(N-1)/N of the tensor sent "
                     "by each host,\n       all of it once for weir\n"
                     "path MTU {}; weir: window {}, messages of {} bytes\n",
                     numbers.mtu, numbers.window, numbers.message_bytes);
}

std::string comparison_plot(std::span<const Comparison> comparisons) {
  std::vector<TimeCurve> curves;
  for (const Comparison& one : comparisons) {
    if (curves.empty() || curves.back().name != one.algorithm) {
      curves.push_back({one.algorithm, {}});
    }
    curves.back().points.push_back({static_cast<double>(one.bytes), one.microseconds});
  }
  return plot_times("All-reduce: time by size", curves);
}

} // namespace weir::app
