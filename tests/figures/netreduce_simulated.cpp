// SPDX-License-Identifier: BSD-3-Clause
#include "netreduce_simulated.hpp"

#include "inline_ring.hpp"
#include "inputs.hpp"
#include "plan/generators.hpp"
#include "switch_run.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

namespace weir::figures::netreduce {
namespace {

constexpr std::uint32_t kHosts = 4;
constexpr auto kLinkBitsPerSecond = static_cast<std::uint64_t>(kInterBytesPerSecond * kBitsPerByte);
constexpr double kNanosecondsPerSecond = 1e9;
constexpr std::uint64_t kTensorBytes = 16'000'000;

netsim::WeirSettings settings_of_paper() {
  netsim::WeirSettings settings;
  settings.host.mtu = kPayloadBytes;
  settings.host.message_bytes = static_cast<std::uint32_t>(kMessageBytes);
  settings.host.packets_in_flight = kPacketsInFlight;
  settings.host.ack_timeout = netsim::kSecond; // nothing is lost
  settings.host.window = kWindow;
  return settings;
}

/// A round trip crosses four cables: to the switch, to the successor, and back.
plan::LinkTraits link() {
  constexpr double kCables = 4;
  return {kLinkBitsPerSecond,
          static_cast<std::uint64_t>(kRttSeconds / kCables * kNanosecondsPerSecond)};
}

/// Bytes on a link, with headers, divided by those of a tensor of `bytes` with its frames' headers.
double tensors(const netsim::WeirResult& run, plan::LinkId id, std::uint64_t bytes) {
  return static_cast<double>(run.links[id].bytes) / wire_bytes(bytes, settings_of_paper().host);
}

plan::LinkId uplink_of_first_leaf(const plan::Topology& topology) {
  const plan::VertexId leaf = topology.node_count();
  for (const plan::LinkId id : topology.outgoing(leaf)) {
    if (!topology.is_node(topology.link(id).to)) {
      return id;
    }
  }
  throw plan::PlanError("the leaf has no link to a spine");
}

} // namespace

void single_gpu_hosts(const Settings& settings, Results& results) {
  const plan::LinkTraits cable{kLinkBitsPerSecond, kCableLatencyNs};
  const plan::Topology topology = mutated(plan::make_star(kHosts, cable), settings.mutation);
  constexpr std::uint64_t kLongTensor = 4 * kTensorBytes; // fills the ring's pipeline
  netsim::WeirSettings short_messages; // with these, a window of 2 limits neither method
  short_messages.host.packets_in_flight = kPacketsInFlight;
  short_messages.host.ack_timeout = netsim::kSecond;
  results.value("gain", compare(topology, kLongTensor, short_messages).gain());
}

void window(const Settings& settings, Results& results) {
  const double needed = std::ceil(kRttSeconds * kInterBytesPerSecond / kMessageBytes);
  results.value("window", needed);
  const plan::Topology topology = mutated(plan::make_star(kHosts, link()), settings.mutation);
  const auto rate = [&](std::uint32_t messages) {
    netsim::WeirSettings traits = settings_of_paper();
    traits.host.window = messages;
    const auto run = through_switches(topology, kTensorBytes, traits);
    return static_cast<double>(kTensorBytes) / seconds_of(run.duration);
  };
  constexpr std::uint32_t kMost = 8;
  const double best = rate(kMost);
  const double full = kInterBytesPerSecond * static_cast<double>(kTensorBytes) /
                      wire_bytes(kTensorBytes, settings_of_paper().host);
  for (std::uint32_t messages = 1; messages <= kMost; messages *= 2) {
    const double here = rate(messages);
    if (messages < kMost) {
      results.value(fmt::format("rate.{}", messages), here / best);
    }
    results.point("window", "through the switch", messages, here / full);
  }
  results.value("rate over wire", best / full);
}

void two_racks(const Settings& settings, Results& results) {
  const plan::LeafSpine shape{
      .leaves = 2, .nodes_per_leaf = 2, .spines = 1, .host = link(), .uplink = link()};
  const plan::Topology topology = mutated(plan::make_spine_leaf(shape), settings.mutation);
  const Compared run = compare(topology, kTensorBytes, settings_of_paper());
  const plan::LinkId host = topology.outgoing(0).front();
  const plan::LinkId leaf = uplink_of_first_leaf(topology);
  const auto both_ways = [&](const std::string& name, plan::LinkId up) {
    results.value(name + " up", tensors(run.through_switch, up, kTensorBytes));
    results.value(name + " down",
                  tensors(run.through_switch, plan::Topology::reverse_of(up), kTensorBytes));
  };
  both_ways("host", host);
  both_ways("leaf", leaf);
  results.value("leaf over host", tensors(run.through_switch, leaf, kTensorBytes) /
                                      tensors(run.through_switch, host, kTensorBytes));
  results.value("leaf up.ring", tensors(run.ring, leaf, kTensorBytes));
}

void repeats(const Settings& /*settings*/, Results& results) {
  InlineRing ring(kHosts);
  std::vector<std::vector<test::Built>> messages;
  for (std::uint16_t rank = 0; rank < kHosts; ++rank) {
    messages.push_back(ring.message(rank, InlineRing::kFirstMessage));
    for (const test::Built& packet : messages.back()) {
      ring.send(packet, rank);
    }
  }
  int changed = 0;
  int answered = 0;
  for (std::uint16_t rank = 0; rank < kHosts; ++rank) {
    for (const test::Built& packet : messages[rank]) {
      const std::vector<test::Sent> sent = ring.send(packet, rank);
      answered += sent.size() == 1 ? 1 : 0;
      changed += sent.size() == 1 && sent.front().bytes == ring.sum_for(packet) ? 0 : 1;
    }
  }
  results.value("repeats answered", answered);
  results.value("repeats that changed a bit", changed);

  std::size_t sums = 0;
  for (std::uint16_t rank = 0; rank < kHosts; ++rank) {
    const std::vector<test::Built> next = ring.message(rank, InlineRing::kFirstMessage + 1);
    for (std::size_t packet = rank == 0 ? 1 : 0; packet < next.size(); ++packet) {
      sums += ring.send(next[packet], rank).size();
    }
  }
  results.value("sums without a FIRST", static_cast<double>(sums));
}

} // namespace weir::figures::netreduce
