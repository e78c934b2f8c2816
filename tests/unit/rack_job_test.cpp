// SPDX-License-Identifier: BSD-3-Clause

/// All-reduces over racks in lib/plan/netsim, compared with formulas. Without loss a link carries
/// frames one after the other, so a time is the bytes of the busiest link over its rate, and the
/// time in which the first frame comes and the last acknowledgement goes back.

#include "plan/topology.hpp"
#include "rack_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace weir::bench::rack_job_test {
namespace {

constexpr double kTolerance = 0.03;

// Bytes on the wire of RoCEv2 over IPv4: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4; preamble,
// FCS, gap 24. RETH and immediate data once a message, AETH in an acknowledgement.
constexpr double kHeaders = 14 + 20 + 8 + 12 + 4 + 24;
constexpr double kOnceAMessage = 16 + 4;
constexpr double kAcknowledgement = 4 + kHeaders;
constexpr double kInaHeader = 40;

constexpr double kLink = kLinkLatency / 1e9;         // s
constexpr double kRate = kHostRate / 8.0;            // bytes/s
constexpr double kFrame = (1024 + kHeaders) / kRate; // s

/// Bytes of so much data as messages of at most 16 KiB in frames of at most 1 KiB, and of two
/// acknowledgements for each message in the other direction, which other data has to share.
double wire_bytes(double data, double header_of_message) {
  const double messages = std::ceil(data / (16384 - header_of_message));
  const double frames = std::ceil((data + messages * header_of_message) / 1024);
  return data + messages * (header_of_message + kOnceAMessage + 2 * kAcknowledgement) +
         frames * kHeaders;
}

/// A rack's uplink as a multiple of a host's link; more than a host's share of it is no use.
double uplink_for_one(const RackJob& job) {
  return std::min(1.0, static_cast<double>(job.hosts) / job.oversubscription);
}

/// The share of a host's rate that it has when all of its rack cross the uplink.
double uplink_for_all(const RackJob& job) {
  return 1.0 / job.oversubscription;
}

double through_switches(const RackJob& job, double rate, double links) {
  // Up and down, and the acknowledgement back; each switch on the way waits for the whole frame.
  return wire_bytes(static_cast<double>(job.bytes), kInaHeader) / kRate / rate + 2 * links * kLink +
         (links - 1) * kFrame;
}

double round_the_ring(const RackJob& job, double rate) {
  const double ranks = job.ranks();
  return 2 * (ranks - 1) * wire_bytes(static_cast<double>(job.bytes) / ranks, 0) / kRate / rate;
}

/// `stays`: whether partners at this distance are in one rack.
template <class Stays>
double by_halving(const RackJob& job, const Stays& stays) {
  double seconds = 0;
  for (std::uint32_t distance = 1; distance < job.ranks(); distance *= 2) {
    const double piece = static_cast<double>(job.bytes) / (2.0 * distance);
    const double links = stays(distance) ? 2 : 4;
    const double rate = stays(distance) ? 1 : uplink_for_all(job);
    seconds += 2 * (wire_bytes(piece, 0) / kRate / rate + links * kLink + (links - 1) * kFrame);
  }
  return seconds;
}

double expected(Way way, const RackJob& job) {
  switch (way) {
  case Way::tree:
    return through_switches(job, uplink_for_one(job), 4);
  case Way::one_switch:
    return through_switches(job, 1, 2);
  case Way::ring:
    return round_the_ring(job, uplink_for_one(job));
  case Way::ring_across:
    return round_the_ring(job, uplink_for_all(job));
  case Way::halving:
    return by_halving(job, [&](std::uint32_t distance) { return distance < job.hosts; });
  default:
    return by_halving(job, [&](std::uint32_t distance) { return distance >= job.racks; });
  }
}

double simulated(Way way, const RackJob& job, const plan::Topology& topology) {
  return static_cast<double>(reduce(way, job, topology).duration) / netsim::kSecond;
}

/// Queues that never keep a host from sending.
netsim::HostTraits eager_hosts() {
  netsim::HostTraits host = hosts_with_nics();
  host.packets_in_flight = 1 << 16;
  host.window = 1024;
  return host;
}

using Shape = std::tuple<int, int, int>; // racks, hosts of each, oversubscription

RackJob job_of(const Shape& shape) {
  const auto& [racks, hosts, oversubscription] = shape;
  return {.racks = static_cast<std::uint32_t>(racks),
          .hosts = static_cast<std::uint32_t>(hosts),
          .oversubscription = static_cast<std::uint32_t>(oversubscription),
          .bytes = 4 << 20,
          .host = eager_hosts()};
}

class Racks : public testing::TestWithParam<Shape> {};

TEST_P(Racks, TakeWhatTheirBusiestLinkTakes) {
  const RackJob job = job_of(GetParam());
  for (const auto& [way, name] : kWays) {
    const double ratio = simulated(way, job, topology_of(way, job)) / expected(way, job);
    EXPECT_NEAR(ratio, 1, kTolerance) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Racks,
                         testing::Combine(testing::Values(2, 4, 8), testing::Values(1, 2, 4),
                                          testing::Values(1, 2, 4)));

plan::Topology with_slow_cable(plan::Topology topology) {
  plan::LinkTraits traits = topology.link(0).traits;
  traits.bits_per_second /= 2;
  topology.set_traits(0, traits);
  return topology;
}

/// A mistake that the formulas must see: host 0's cable carries half of what it should.
TEST(RackFormulas, SeeASlowCable) {
  const RackJob job = job_of({2, 4, 1});
  for (const auto& [way, name] : kWays) {
    const plan::Topology topology = topology_of(way, job);
    ASSERT_TRUE(topology.is_node(topology.link(0).from) || topology.is_node(topology.link(0).to));
    EXPECT_GT(simulated(way, job, with_slow_cable(topology)) / expected(way, job), 1.5) << name;
  }
}

/// Another: racks whose switches pass each host's share on, as if they did not add.
TEST(RackFormulas, SeeASwitchThatDoesNotAdd) {
  const RackJob job = job_of({2, 4, 4});
  const double uplinks = through_switches(job, uplink_for_all(job), 4);
  EXPECT_LT(simulated(Way::tree, job, topology_of(Way::tree, job)) / uplinks, 0.3);
}

/// The tree is ahead of a ring by the ring's factor alone where an uplink has room for one host,
/// and by the oversubscription, too, where each hop of the ring crosses racks.
TEST(RackFormulas, TellHowFarTheTreeIsAhead) {
  const RackJob job = job_of({2, 4, 4});
  const double tree = simulated(Way::tree, job, topology_of(Way::tree, job));
  const double factor = 2.0 * (job.ranks() - 1) / job.ranks();
  EXPECT_NEAR(simulated(Way::ring, job, topology_of(Way::ring, job)) / tree, factor, 0.05);
  EXPECT_NEAR(simulated(Way::ring_across, job, topology_of(Way::ring_across, job)) / tree,
              factor * job.oversubscription, 0.2);
}

/// Every frame is lost with the same probability, whatever it carries.
TEST(RackLosses, AreTheShareThatWasAskedFor) {
  RackJob job = job_of({4, 4, 2});
  job.loss_ppm = 1000;
  for (const auto& [way, name] : kWays) {
    const netsim::WeirResult result = reduce(way, job, topology_of(way, job));
    double frames = 0;
    for (const netsim::LinkUse& link : result.links) {
      frames += static_cast<double>(link.packets);
    }
    const double wanted = frames * job.loss_ppm / 1e6;
    EXPECT_NEAR(static_cast<double>(result.lost), wanted, 5 * std::sqrt(wanted)) << name;
  }
}

} // namespace
} // namespace weir::bench::rack_job_test
