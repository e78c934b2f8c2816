// SPDX-License-Identifier: BSD-3-Clause
#include "rack_job.hpp"

#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/generators.hpp"
#include "plan/schedules.hpp"

#include <vector>

namespace weir::bench {
namespace {

netsim::WeirSettings settings_of(const RackJob& job) {
  netsim::WeirSettings settings;
  settings.host = job.host;
  settings.mending = netsim::Mending::from_cache;
  settings.mending_floor = 60 * netsim::kMicrosecond; // docs/protocol.md §9, R5
  settings.loss = job.loss_ppm / 1e6;
  settings.seed = job.seed;
  return settings;
}

/// Hosts by rank.
std::vector<plan::VertexId> order_of(Way way, const plan::Topology& topology) {
  const std::vector<plan::VertexId> nodes = plan::every_node(topology);
  const bool is_across = way == Way::ring_across || way == Way::halving_across;
  return is_across ? plan::crossing_order(topology, nodes) : nodes;
}

} // namespace

plan::Topology topology_of(Way way, const RackJob& job) {
  if (way == Way::one_switch) {
    return plan::make_star(job.ranks(), {kHostRate, kLinkLatency});
  }
  return plan::make_spine_leaf(
      {.leaves = job.racks,
       .nodes_per_leaf = job.hosts,
       .spines = 1,
       .host = {kHostRate, kLinkLatency},
       .uplink = {kHostRate * job.hosts / job.oversubscription, kLinkLatency}});
}

netsim::WeirResult reduce(Way way, const RackJob& job, const plan::Topology& topology) {
  const netsim::WeirSettings settings = settings_of(job);
  switch (way) {
  case Way::ring:
  case Way::ring_across:
    return netsim::run_host_ring(topology, order_of(way, topology), job.bytes, settings);
  case Way::halving:
  case Way::halving_across:
    return netsim::run_halving_doubling(topology, order_of(way, topology), job.bytes, settings);
  default:
    return netsim::run_weir(topology, plan::plan_fabric(topology, plan::every_node(topology), 1),
                            job.bytes, settings);
  }
}

double link_times(netsim::Time duration, const RackJob& job) {
  const double frames = static_cast<double>(job.bytes) / job.host.mtu;
  const double bits = 8 * frames * (job.host.mtu + job.host.frame_overhead);
  return static_cast<double>(duration) / netsim::kSecond * kHostRate / bits;
}

} // namespace weir::bench
