// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How long a plan's schedule takes on its topology, packet by packet.

#include "netsim/framing.hpp"
#include "netsim/network.hpp"
#include "netsim/simulation_error.hpp"
#include "netsim/time.hpp"
#include "netsim/virtual_channels.hpp"
#include "plan/schedule.hpp"
#include "plan/topology.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::netsim {

/// What a node does besides sending and receiving.
struct NodeTraits {
  /// Reducing a message takes ceil(bytes / reduction_bytes) times this; a node reduces one message
  /// after the other. 0: no time.
  Time reduction_time = 0;
  std::uint32_t reduction_bytes = 1;

  /// From the arrival of a message's last packet to its use: time of both ends' interfaces.
  Time interface_latency = 0;

  /// Added to the latency of each link to a router: to a switch, in direct networks to a node.
  Time routing_latency = 0;

  /// Only for direct networks, where a node is also a router: the latency of each of the
  /// schedule.channels links from node to router, and of as many back. Their rate is that of the
  /// node's fastest link.
  Time channel_latency = 0;

  /// A channel takes its next message when at most this many packets of the last are unsent, and
  /// this many (or all) of them were handed to it, each in `handing_over`.
  std::uint32_t buffered_packets = 58;
  Time handing_over = 0;

  /// Which of several free channels takes a message.
  enum class ChannelChoice : std::uint8_t { emptiest, lowest };
  ChannelChoice channel_choice = ChannelChoice::emptiest;

  enum class StepStart : std::uint8_t {
    any_channel,  // a node's next step may begin on free channels
    all_channels, // when every channel is free
  };
  StepStart step_start = StepStart::any_channel;

  /// NOPs delay a node for the estimated time of a step (MultiTree §IV-A, footnote 4), or are
  /// ignored.
  enum class Lockstep : std::uint8_t { ignored, estimated };
  Lockstep lockstep = Lockstep::ignored;
};

struct ScheduleSettings {
  Framing framing;
  NodeTraits nodes;
  /// nullopt: one FIFO without limit before each link.
  std::optional<VirtualChannels> virtual_channels;
};

struct ScheduleResult {
  Time duration = 0;  // until every node has and has reduced what it waits for
  Time reduction = 0; // the largest of all nodes' sums of reduction times
  // By step from 1: when a channel took its first message; [0] is unused.
  std::vector<Time> step_start;
  std::vector<Time> step_end; // when its last message arrived
  std::vector<LinkUse> links; // the topology's, by plan::LinkId
  std::uint64_t packets = 0;  // all messages'
  std::uint64_t events = 0;

  bool operator==(const ScheduleResult&) const = default;
};

/// `bytes` is the tensor's size D, cut into schedule.chunk_count chunks of ceil(D / count). Equal
/// arguments give equal results on every machine. Errors: SimulationError for settings that make no
/// sense, for a route that does not connect, and for a schedule or network that stops (a circular
/// wait, a deadlock of virtual channels); it names a node that waits.
ScheduleResult run_schedule(const plan::Topology& topology, const plan::Schedule& schedule,
                            std::uint64_t bytes, const ScheduleSettings& settings);

/// Values of the public simulator of MultiTree's authors (farabimahmud/accelerator, b241ca1;
/// ISCA'21 Table III): 256-byte packets with a 16-byte head flit at 16 GB/s, router 4 ns, interface
/// 6 ns, channel 1 ns; an accelerator reduces 2048 bytes of f32 in 16 ns.
ScheduleSettings multitree_settings();

} // namespace weir::netsim
