// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/weir_run.hpp"

#include "netsim/frame_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace weir::netsim {
namespace {

void require_sensible(const WeirSettings& settings) {
  const HostTraits& host = settings.host;
  constexpr std::uint32_t kSmallestMessage = 48; // a header and an element
  if (host.mtu == 0 || host.message_bytes < kSmallestMessage || host.window == 0 ||
      host.packets_in_flight == 0 || host.ack_request_every == 0 || host.ack_timeout == 0) {
    throw SimulationError(
        "a host needs an MTU, messages of 48 bytes at least, a window, packets in "
        "flight, a distance between acknowledgements and an ACK timeout");
  }
  if (settings.costs.lcores == 0) {
    throw SimulationError("a switch needs one lcore at least");
  }
  if (!(settings.loss >= 0 && settings.loss < 1)) {
    throw SimulationError(
        fmt::format("found a loss of {}; allowed: 0 and more, below 1", settings.loss));
  }
  if (settings.mending_floor < 2) {
    throw SimulationError(
        "found a floor of 0 for mending's timers; a host's queueing is the least");
  }
}

void add(WeirResult& sum, const WeirResult& attempt) {
  sum.duration += attempt.duration;
  sum.frames += attempt.frames;
  sum.repeats += attempt.repeats;
  sum.lost += attempt.lost;
  sum.events += attempt.events;
  sum.slots = std::max(sum.slots, attempt.slots);
  sum.links.resize(attempt.links.size());
  for (std::size_t link = 0; link < sum.links.size(); ++link) {
    sum.links[link].packets += attempt.links[link].packets;
    sum.links[link].bytes += attempt.links[link].bytes;
    sum.links[link].busy += attempt.links[link].busy;
  }
}

/// Starts a job again when a queue pair fails.
template <class Prepare>
WeirResult run_job(const plan::Topology& topology, const WeirSettings& settings,
                   const Prepare& prepare) {
  constexpr std::uint64_t kSeedsApart = 1000;
  constexpr std::uint32_t kMostRestarts = 100;
  WeirResult result;
  for (std::uint32_t restarts = 0; restarts <= kMostRestarts; ++restarts) {
    FrameJob job(topology, settings, settings.seed + restarts * kSeedsApart);
    prepare(job);
    const FrameJob::Outcome outcome = job.run();
    add(result, job.result());
    result.restarts = restarts;
    if (outcome == FrameJob::Outcome::finished) {
      return result;
    }
  }
  throw SimulationError(fmt::format("a job that never ends: at a loss of {} its queue pairs failed "
                                    "{} times",
                                    settings.loss, kMostRestarts + 1));
}

} // namespace

WeirResult run_weir(const plan::Topology& topology, const plan::FabricPlan& plan,
                    std::uint64_t bytes, const WeirSettings& settings) {
  require_sensible(settings);
  for (const plan::FabricRing& ring : plan.rings) {
    if (ring.switches.size() > 1 && settings.loss != 0 && settings.mending == Mending::none) {
      throw SimulationError("losses in a tree of switches need mending");
    }
  }
  return run_job(topology, settings, [&](FrameJob& job) {
    const std::uint64_t rings = plan.rings.size();
    for (std::uint64_t ring = 0; ring < rings; ++ring) {
      job.add_folded_ring(plan.rings[ring], (ring + 1) * bytes / rings - ring * bytes / rings);
    }
  });
}

WeirResult run_host_ring(const plan::Topology& topology, std::span<const plan::VertexId> order,
                         std::uint64_t bytes, const WeirSettings& settings) {
  require_sensible(settings);
  if (order.size() < 2) {
    throw SimulationError(fmt::format("a ring of {} hosts; two are the least", order.size()));
  }
  return run_job(topology, settings, [&](FrameJob& job) { job.add_host_ring(order, bytes); });
}

WeirResult run_halving_doubling(const plan::Topology& topology,
                                std::span<const plan::VertexId> order, std::uint64_t bytes,
                                const WeirSettings& settings) {
  require_sensible(settings);
  if (order.size() < 2 || !std::has_single_bit(order.size())) {
    throw SimulationError(
        fmt::format("{} hosts; halving and doubling want 2, 4, 8 and so on", order.size()));
  }
  return run_job(topology, settings,
                 [&](FrameJob& job) { job.add_halving_doubling(order, bytes); });
}

} // namespace weir::netsim
