// SPDX-License-Identifier: BSD-3-Clause
#include "allreduce_switch_simulated.hpp"

#include "inline_ring.hpp"
#include "inputs.hpp"
#include "output_arbiter.hpp"
#include "plan/generators.hpp"
#include "switch_run.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace weir::figures::allreduce_switch {
namespace {

/// Models are simulated at this share of their size; latency is then still below 1 % of the time.
constexpr double kScale = 1.0 / 16;
constexpr netsim::Time kAckTimeout = netsim::kSecond; // nothing is lost

netsim::WeirSettings settings_of_paper() {
  netsim::WeirSettings settings;
  settings.host.mtu = kPayloadBytes;
  settings.host.frame_overhead = kHeaderBytes + kFcsPreambleAndGapBytes;
  settings.host.packets_in_flight = kPacketsInFlight;
  settings.host.ack_timeout = kAckTimeout;
  settings.costs.latency = kSwitchLatencyNs * netsim::kNanosecond;
  return settings;
}

plan::Topology star(std::uint32_t hosts, Mutation mutation) {
  return mutated(plan::make_star(hosts, {kLinkBitsPerSecond, kCableLatencyNs}), mutation);
}

/// Shares of an output's frames, by queue, when all queues always have one.
std::vector<double> shares_of(const std::vector<std::uint32_t>& weights) {
  constexpr std::uint32_t kFrames = 16'000;
  OutputArbiter arbiter(weights);
  const std::vector<bool> all(weights.size(), true);
  std::vector<double> shares(weights.size(), 0);
  for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
    shares[arbiter.next(all)] += 1.0 / kFrames;
  }
  return shares;
}

/// Whether a ring with this number of members gets the result of its first message, for each packet
/// and member.
bool all_get_the_sum(std::uint16_t world) {
  InlineRing ring(world);
  std::vector<std::vector<test::Built>> messages;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    messages.push_back(ring.message(rank, InlineRing::kFirstMessage));
  }
  for (std::size_t packet = 0; packet < messages.front().size(); ++packet) {
    std::vector<test::Sent> sent;
    std::vector<test::Bytes> expected;
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      sent = ring.send(messages[rank][packet], rank);
      expected.push_back(ring.sum_for(messages[rank][packet]));
    }
    const bool is_right = std::ranges::is_permutation(sent, expected, {}, &test::Sent::bytes);
    if (!is_right) {
      return false;
    }
  }
  return true;
}

} // namespace

void models(const Settings& settings, Results& results) {
  const netsim::WeirSettings traits = settings_of_paper();
  const plan::Topology topology = star(kMostHosts, settings.mutation);
  for (const Model& model : kModels) {
    const auto bytes = static_cast<std::uint64_t>(model.megabytes * kMega * kScale);
    const Compared run = compare(topology, bytes, traits);
    results.value(fmt::format("gain.{}", model.name), run.gain());
    if (&model == &kModels.back()) {
      const double bound = 8 * wire_bytes(bytes, traits.host) / kLinkBitsPerSecond;
      results.value("switch over bound", seconds_of(run.through_switch.duration) / bound);
    }
  }
}

void by_hosts(const Settings& settings, Results& results) {
  constexpr std::uint64_t kBytes = 8'000'000;
  for (std::uint32_t hosts = 2; hosts <= kMostHosts; ++hosts) {
    const double gain = compare(star(hosts, settings.mutation), kBytes, settings_of_paper()).gain();
    results.value(fmt::format("gain.{}", hosts), gain);
    results.point("gain", "simulated", hosts, gain);
    results.point("gain", "2(n-1)/n", hosts, 2.0 * (hosts - 1) / hosts);
  }
}

void arbitration(const Settings& /*settings*/, Results& results) {
  // Aggregation has the same weight as all branches' retransmissions together.
  std::vector<std::uint32_t> weights(kMostHosts, 1);
  const std::vector<double> forwarding = shares_of(weights);
  weights.insert(weights.begin(), kMostHosts);
  const std::vector<double> shares = shares_of(weights);
  results.value("share.aggregation", shares.front());
  results.value("share.retransmission", shares.back());
  results.value("share.forwarding", forwarding.back());
  int worlds = 0;
  for (std::uint16_t world = 2; world <= kMostHosts; ++world) {
    worlds += all_get_the_sum(world) ? 1 : 0;
  }
  results.value("worlds", worlds);
}

} // namespace weir::figures::allreduce_switch
