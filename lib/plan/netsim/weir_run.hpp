// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// All-reduce through trees of Weir switches, and by the hosts alone on the same network: queue
/// pairs, windows, slots and losses, frame by frame (docs/protocol.md).

#include "netsim/network.hpp"
#include "netsim/simulation_error.hpp"
#include "netsim/time.hpp"
#include "plan/fabric.hpp"
#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::netsim {

/// A host's queue pairs (RC) and its window of messages.
struct HostTraits {
  /// When a host decides what it sends next: as soon as a queue pair has a packet, which then waits
  /// for the link, or when the link takes it, as a NIC. With `by_link` answers overtake data.
  enum class Choice : std::uint8_t { at_once, by_link };

  Choice choice = Choice::at_once;
  std::uint32_t mtu = 1024;
  std::uint32_t message_bytes = 16384; // a full message, the INA header included
  std::uint32_t window = 32;           // N, messages; the switch has slots for 2N
  std::uint32_t packets_in_flight = 256;
  std::uint32_t ack_request_every = 8; // packets; also on each message's last
  Time ack_timeout = 500 * kMicrosecond;
  std::uint32_t retry_count = 7;
  Time latency = 0; // of frames into a host, from its interface to the program
  std::uint32_t frame_overhead = 14 + 20 + 8 + 12 + 4 + 24; // headers, ICRC, preamble, FCS, gap
};

/// A switch's processing times.
struct SwitchCosts {
  Time packet_time = 0; // of an lcore, for each packet of a ring
  std::uint32_t lcores = 1;
  Time latency = 0; // added to it, from the last contribution's arrival to the results' departure
};

enum class Mending : std::uint8_t {
  none,       // the queue pairs repair losses, with go-back-N
  from_cache, // results in order; one NAK for a missing packet; results again from the cache
};

enum class Losses : std::uint8_t { of_all_frames, of_data_between_switches };

struct WeirSettings {
  HostTraits host;
  SwitchCosts costs;
  Mending mending = Mending::none;
  // Least value of its timers; larger than a host's queueing time.
  Time mending_floor = 100 * kMicrosecond;
  double loss = 0; // share of frames that a link loses, each at random
  Losses losses = Losses::of_all_frames;
  std::uint64_t seed = 1;
};

struct WeirResult {
  Time duration = 0;          // until every host has everything; includes failed attempts
  std::uint32_t restarts = 0; // a queue pair ran out of retries and the job began again
  std::uint64_t frames = 0;   // sent by hosts, acknowledgements not counted
  std::uint64_t repeats = 0;  // hosts' frames that had been sent before
  std::uint64_t lost = 0;     // frames of any kind
  std::uint32_t slots = 0;    // most slots filling at once in one switch
  std::vector<LinkUse> links; // the topology's
  std::uint64_t events = 0;

  bool operator==(const WeirResult&) const = default;
};

/// `bytes` of tensor, shared equally by the plan's rings. The clock starts after the hellos.
/// Errors: SimulationError for settings that make no sense; for losses in a tree of several
/// switches without mending (the protocol in which queue pairs repair losses has one switch only);
/// for a job that never ends.
WeirResult run_weir(const plan::Topology& topology, const plan::FabricPlan& plan,
                    std::uint64_t bytes, const WeirSettings& settings);

/// The hosts' own ring, reduce-scatter then all-gather (Patarasuk and Yuan, JPDC 69, 2009), through
/// switches that only forward, with the same links, queue pairs and losses. A host sends a message
/// on as soon as it has come. `order` has the hosts by rank. Mending is ignored.
WeirResult run_host_ring(const plan::Topology& topology, std::span<const plan::VertexId> order,
                         std::uint64_t bytes, const WeirSettings& settings);

/// The hosts' recursive halving and doubling (Thakur, Rabenseifner, Gropp, IJHPCA 19, 2005) in the
/// same network. Neighbours in `order` exchange the largest pieces. A stage begins when the one
/// before has come. Errors: SimulationError, also unless the number of hosts is a power of two.
WeirResult run_halving_doubling(const plan::Topology& topology,
                                std::span<const plan::VertexId> order, std::uint64_t bytes,
                                const WeirSettings& settings);

} // namespace weir::netsim
