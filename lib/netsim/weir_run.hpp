// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// All-reduce through trees of Weir switches, and round a ring of hosts on the same network: queue
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
  std::uint32_t mtu = 1024;
  std::uint32_t message_bytes = 16384; // a full message, the INA header included
  std::uint32_t window = 32;           // N, messages; the switch has slots for 2N
  std::uint32_t packets_in_flight = 256;
  std::uint32_t ack_request_every = 8; // packets; each message's last asks besides
  Time ack_timeout = 500 * kMicrosecond;
  std::uint32_t retry_count = 7;
  Time latency = 0; // of what enters a host, from its interface to the program
  std::uint32_t frame_overhead = 14 + 20 + 8 + 12 + 4 + 24; // headers, ICRC, preamble, FCS, gap
};

/// What a switch takes of itself.
struct SwitchCosts {
  Time packet_time = 0; // of an lcore, a packet of a ring
  std::uint32_t lcores = 1;
  Time latency = 0; // besides, from the last contribution's arrival to the results' departure
};

enum class Mending : std::uint8_t {
  none,       // losses are the queue pairs' affair, which go back N
  from_cache, // results in order; one NAK to whose packet is missing; results again from the cache
};

struct WeirSettings {
  HostTraits host;
  SwitchCosts costs;
  Mending mending = Mending::none;
  Time mending_floor = 100 * kMicrosecond; // of its timers; above a host's queueing
  double loss = 0;                         // share of frames that a link loses, each for itself
  std::uint64_t seed = 1;
};

struct WeirResult {
  Time duration = 0;          // until every host has everything; with the attempts that failed
  std::uint32_t restarts = 0; // a queue pair retried too often, and the job began again
  std::uint64_t frames = 0;   // sent by hosts, acknowledgements not counted
  std::uint64_t repeats = 0;  // of those, sent before
  std::uint64_t lost = 0;     // frames, of any kind
  std::uint32_t slots = 0;    // that one switch had filling at once, at most
  std::vector<LinkUse> links; // the topology's
  std::uint64_t events = 0;

  bool operator==(const WeirResult&) const = default;
};

/// `bytes` of tensor, shared equally by the plan's rings. Hellos are done before the clock starts.
/// Errors: SimulationError for settings without sense, for losses in a tree of several switches
/// without mending (the protocol that leaves losses to the queue pairs knows one switch), and for a
/// job that never ends.
WeirResult run_weir(const plan::Topology& topology, const plan::FabricPlan& plan,
                    std::uint64_t bytes, const WeirSettings& settings);

/// The hosts' own ring, reduce-scatter then all-gather (Patarasuk and Yuan, JPDC 69, 2009), through
/// switches that only forward: over the same links, queue pairs and losses. A message goes on as
/// soon as it has come. `order`: the hosts, by rank. Without a switch, mending is not looked at.
WeirResult run_host_ring(const plan::Topology& topology, std::span<const plan::VertexId> order,
                         std::uint64_t bytes, const WeirSettings& settings);

} // namespace weir::netsim
