// SPDX-License-Identifier: BSD-3-Clause
#include "switch_run.hpp"

#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"

#include <utility>

namespace weir::figures {

plan::Topology mutated(plan::Topology topology, Mutation mutation) {
  if (mutation == Mutation::link_slower) {
    const plan::LinkId cable = topology.outgoing(0).front();
    plan::LinkTraits traits = topology.link(cable).traits;
    traits.bits_per_second /= 2;
    topology.set_traits(cable, traits);
  }
  return topology;
}

netsim::WeirResult through_switches(const plan::Topology& topology, std::uint64_t bytes,
                                    const netsim::WeirSettings& settings) {
  return netsim::run_weir(topology, plan::plan_fabric(topology, plan::every_node(topology), 1),
                          bytes, settings);
}

netsim::WeirResult by_hosts(const plan::Topology& topology, std::uint64_t bytes,
                            const netsim::WeirSettings& settings) {
  return netsim::run_host_ring(topology, plan::every_node(topology), bytes, settings);
}

Compared compare(const plan::Topology& topology, std::uint64_t bytes,
                 const netsim::WeirSettings& settings) {
  return {through_switches(topology, bytes, settings), by_hosts(topology, bytes, settings)};
}

double wire_bytes(std::uint64_t bytes, const netsim::HostTraits& host) {
  return static_cast<double>(bytes) * (host.mtu + host.frame_overhead) / host.mtu;
}

double seconds_of(netsim::Time time) {
  return static_cast<double>(time) / static_cast<double>(netsim::kSecond);
}

} // namespace weir::figures
