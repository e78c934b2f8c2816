// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// All-reduce over one switch or two levels of them, through the switches and round the hosts'
/// ring, with a mutation made.

#include "figure.hpp"
#include "netsim/weir_run.hpp"
#include "plan/topology.hpp"

#include <cstdint>

namespace weir::figures {

/// Seconds of both ways, and what each put on the topology's links.
struct Compared {
  netsim::WeirResult through_switch;
  netsim::WeirResult ring;

  double gain() const {
    return static_cast<double>(ring.duration) / static_cast<double>(through_switch.duration);
  }
};

/// The topology with the mutation made: node 0's cable at half its rate.
plan::Topology mutated(plan::Topology topology, Mutation mutation);

/// Through a tree of switches: one ring over all nodes.
netsim::WeirResult through_switches(const plan::Topology& topology, std::uint64_t bytes,
                                    const netsim::WeirSettings& settings);

/// The hosts' ring, in the order of their numbers.
netsim::WeirResult by_hosts(const plan::Topology& topology, std::uint64_t bytes,
                            const netsim::WeirSettings& settings);

Compared compare(const plan::Topology& topology, std::uint64_t bytes,
                 const netsim::WeirSettings& settings);

/// Frames of a host's share of the tensor, as bytes on the wire: what no way through one link can
/// undercut.
double wire_bytes(std::uint64_t bytes, const netsim::HostTraits& host);

double seconds_of(netsim::Time time);

} // namespace weir::figures
