// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// All-reduce through one switch or two levels of switches, and on the hosts' ring, with a
/// mutation.

#include "figure.hpp"
#include "netsim/weir_run.hpp"
#include "plan/topology.hpp"

#include <cstdint>

namespace weir::figures {

/// Seconds of both methods, and their bytes on the topology's links.
struct Compared {
  netsim::WeirResult through_switch;
  netsim::WeirResult ring;

  double gain() const {
    return static_cast<double>(ring.duration) / static_cast<double>(through_switch.duration);
  }
};

/// The topology with the mutation: node 0's cable at half of its rate.
plan::Topology mutated(plan::Topology topology, Mutation mutation);

/// Through a tree of switches: one ring over all nodes.
netsim::WeirResult through_switches(const plan::Topology& topology, std::uint64_t bytes,
                                    const netsim::WeirSettings& settings);

/// The hosts' ring, in the order of their numbers.
netsim::WeirResult by_hosts(const plan::Topology& topology, std::uint64_t bytes,
                            const netsim::WeirSettings& settings);

Compared compare(const plan::Topology& topology, std::uint64_t bytes,
                 const netsim::WeirSettings& settings);

/// Bytes on the wire of a host's share of the tensor: the least for any method through one link.
double wire_bytes(std::uint64_t bytes, const netsim::HostTraits& host);

double seconds_of(netsim::Time time);

} // namespace weir::figures
