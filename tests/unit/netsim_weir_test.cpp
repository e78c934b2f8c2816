// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/round_trip.hpp"
#include "netsim/weir_run.hpp"
#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/generators.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

namespace weir::netsim::netsim_weir_test {
namespace {

/// One byte per nanosecond, a microsecond of cable.
constexpr plan::LinkTraits kLink{8'000'000'000, 1000};
/// With this link, full queues are no longer than the timers.
constexpr plan::LinkTraits kFastLink{100'000'000'000, 1000};

/// A message of one element: 40 bytes of header, 4 of data, RETH, immediate data; Ethernet, IPv4,
/// UDP, BTH, ICRC; preamble, FCS, gap.
constexpr std::uint64_t kFrame = 40 + 4 + 16 + 4 + (14 + 20 + 8 + 12 + 4) + 24;
/// An acknowledgement: AETH and the same headers.
constexpr std::uint64_t kAnswer = 4 + (14 + 20 + 8 + 12 + 4) + 24;

plan::Topology racks(std::uint32_t leaves, std::uint32_t hosts, std::uint32_t spines,
                     plan::LinkTraits link = kLink) {
  return plan::make_spine_leaf(
      {.leaves = leaves, .nodes_per_leaf = hosts, .spines = spines, .host = link, .uplink = link});
}

WeirResult reduce(const plan::Topology& topology, std::uint64_t bytes, const WeirSettings& settings,
                  std::uint32_t rings = 1) {
  return run_weir(topology, plan::plan_fabric(topology, plan::every_node(topology), rings), bytes,
                  settings);
}

/// Up, down, and the acknowledgement the same way back.
TEST(Weir, OneFrameThroughOneSwitch) {
  const WeirResult result = reduce(plan::make_star(2, kLink), 4, {});
  EXPECT_EQ(result.duration, 2 * (kFrame + 1000 + kAnswer + 1000) * kNanosecond);
  EXPECT_EQ(result.frames, 2U);
  EXPECT_EQ(result.repeats, 0U);
  EXPECT_EQ(result.slots, 1U);
}

/// Both frames come at once. One lcore begins the second when it has finished the first.
TEST(Weir, SwitchTakesItsTime) {
  const plan::Topology star = plan::make_star(2, kLink);
  WeirSettings settings;
  const Time free_of_cost = reduce(star, 4, settings).duration;
  settings.costs = {.packet_time = 100 * kNanosecond, .lcores = 1, .latency = 50 * kNanosecond};
  EXPECT_EQ(reduce(star, 4, settings).duration, free_of_cost + 250 * kNanosecond);
  settings.costs.lcores = 2;
  EXPECT_EQ(reduce(star, 4, settings).duration, free_of_cost + 150 * kNanosecond);
}

/// Four links up and down; the acknowledgements between racks take as many.
TEST(Weir, TreeOfTwoLevels) {
  for (const Mending mending : {Mending::none, Mending::from_cache}) {
    WeirSettings settings;
    settings.mending = mending;
    EXPECT_EQ(reduce(racks(2, 2, 1), 4, settings).duration,
              4 * (kFrame + 1000 + kAnswer + 1000) * kNanosecond);
  }
}

/// NetReduce §3.3: an uplink carries one share of the data per rack, not one per host. It also
/// carries the acknowledgements of the connection into the rack and of the one out of it.
TEST(Weir, UplinkCarriesOneShareARack) {
  const plan::Topology topology = racks(4, 8, 1, kFastLink);
  constexpr std::uint64_t kBytes = 1 << 18;
  const WeirResult result = reduce(topology, kBytes, {});
  for (std::size_t link = 0; link < topology.links().size(); ++link) {
    const plan::Link& traits = topology.links()[link];
    if (!topology.is_node(traits.from) && !topology.is_node(traits.to)) {
      EXPECT_GT(result.links[link].bytes, kBytes);
      EXPECT_LT(result.links[link].bytes, kBytes * 12 / 10);
    }
  }
}

/// Rings over spines of their own share the host links, so the time is that of the hosts' links.
TEST(Weir, RingsShareTheTensor) {
  const plan::Topology topology = racks(4, 4, 2, kFastLink);
  const WeirResult one = reduce(topology, 1 << 20, {}, 1);
  const WeirResult two = reduce(topology, 1 << 20, {}, 2);
  EXPECT_NEAR(static_cast<double>(two.duration), static_cast<double>(one.duration),
              static_cast<double>(one.duration) * 0.05);
}

/// Except for the acknowledgements that it asks for before a stall.
TEST(Weir, MendingCostsNoTimeWhereNothingIsLost) {
  const plan::Topology star = plan::make_star(4, kFastLink);
  WeirSettings settings;
  const WeirResult plain = reduce(star, 300'000, settings);
  settings.mending = Mending::from_cache;
  const WeirResult mended = reduce(star, 300'000, settings);
  EXPECT_EQ(plain.duration, mended.duration);
  EXPECT_EQ(mended.repeats, 0U);
}

/// The switch's timers follow the round trip of 800 us, though their floor is 100. Before anything
/// is measured they run out after 100, 200 and 400 more, each time for a window of 32 messages of
/// 16 packets, and never again.
TEST(Weir, LongWaysAreNotTakenForLosses) {
  const plan::Topology star = plan::make_star(4, {100'000'000'000, 400'000});
  WeirSettings settings;
  settings.host.ack_timeout = 10'000 * kMicrosecond;
  settings.mending = Mending::from_cache;
  const WeirResult mended = reduce(star, 16 << 20, settings);
  settings.mending_floor = 10'000 * kMicrosecond;
  const WeirResult patient = reduce(star, 16 << 20, settings);
  const plan::LinkId down = 1; // to host 0
  EXPECT_LE(mended.links[down].packets, patient.links[down].packets + 3 * 32 * 16);
}

/// RFC 6298 §2 with samples of 800, 1200 and 1000, in any unit.
TEST(RoundTrip, IsSmoothedAsInRfc6298) {
  RoundTrip trip;
  EXPECT_EQ(trip.timeout(1), 0U);
  trip.sent(5, 100);
  trip.sent(6, 500); // one at a time
  EXPECT_EQ(trip.acknowledged(5, 700), RoundTrip::Sample::none);
  EXPECT_EQ(trip.acknowledged(6, 900), RoundTrip::Sample::taken);
  EXPECT_EQ(trip.timeout(1), 800U + 4 * 400);
  trip.sent(7, 1000);
  EXPECT_EQ(trip.acknowledged(8, 2200), RoundTrip::Sample::taken);
  EXPECT_EQ(trip.timeout(1), 850U + 4 * 400); // 7/8·800 + 1200/8; 3/4·400 + 400/4
  trip.sent(8, 3000);
  EXPECT_EQ(trip.acknowledged(9, 4000), RoundTrip::Sample::taken);
  EXPECT_EQ(trip.timeout(1), 868U + 4 * 337); // 868.75; 3/4·400 + 150/4
}

TEST(RoundTrip, WhatWasSentTwiceIsNotMeasured) {
  RoundTrip trip;
  trip.sent(1, 100);
  trip.sent_again();
  EXPECT_EQ(trip.acknowledged(2, 200), RoundTrip::Sample::none);
  trip.sent(2, 300);
  EXPECT_EQ(trip.acknowledged(3, 400), RoundTrip::Sample::taken);
}

/// Every job ends, on one switch and on trees, and mending costs fewer repeats and less time.
TEST(Weir, MendingSavesRepeats) {
  const plan::Topology star = plan::make_star(8, kFastLink);
  for (std::uint64_t seed = 1; seed <= test::rounds(5); ++seed) {
    WeirSettings settings;
    settings.loss = 1e-3;
    settings.seed = seed;
    const WeirResult storms = reduce(star, 2 << 20, settings);
    settings.mending = Mending::from_cache;
    const WeirResult mended = reduce(star, 2 << 20, settings);
    EXPECT_GT(mended.lost, 0U);
    EXPECT_LT(mended.repeats, storms.repeats) << seed;
    EXPECT_LT(mended.duration, storms.duration) << seed;
  }
}

TEST(Weir, TreesMendTheirLosses) {
  const plan::Topology topology = racks(4, 4, 2, kFastLink);
  for (std::uint64_t seed = 1; seed <= test::rounds(20); ++seed) {
    WeirSettings settings;
    settings.loss = 1e-2;
    settings.seed = seed;
    settings.mending = Mending::from_cache;
    const WeirResult result = reduce(topology, 1 << 18, settings, 2);
    EXPECT_GT(result.lost, 0U);
    EXPECT_EQ(result.restarts, 0U);
    EXPECT_EQ(result, reduce(topology, 1 << 18, settings, 2));
  }
}

/// A partial sum that is lost comes from the cache of the switch below, a total from the one above.
TEST(Weir, LossesBetweenSwitchesMakeNoRankRepeat) {
  const plan::Topology topology = racks(4, 4, 1, kFastLink);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    WeirSettings settings;
    settings.loss = 1e-3;
    settings.losses = Losses::of_data_between_switches;
    settings.seed = seed;
    settings.mending = Mending::from_cache;
    const WeirResult result = reduce(topology, 1 << 20, settings);
    EXPECT_GT(result.lost, 0U) << seed;
    EXPECT_EQ(result.repeats, 0U) << seed;
  }
}

/// Without loss an uplink carries one frame for each of one rank (and the last ones' answers).
TEST(Weir, UplinksCarryAFrameForEachOfOneRank) {
  const plan::Topology topology = racks(4, 4, 1, kFastLink);
  WeirSettings settings;
  settings.mending = Mending::from_cache;
  settings.host.ack_request_every = 1 << 20; // an acknowledgement for each message alone
  const WeirResult result = reduce(topology, 1 << 18, settings);
  const std::uint64_t frames = result.frames / 16;
  const std::uint64_t messages = ((1 << 18) - 1) / (16384 - 40) + 1;
  for (plan::LinkId link = 0; link < topology.links().size(); ++link) {
    EXPECT_EQ(result.links[link].packets, frames + messages) << link;
  }
}

TEST(Weir, LossesInTreesNeedMending) {
  WeirSettings settings;
  settings.loss = 1e-3;
  EXPECT_THROW(reduce(racks(2, 2, 1), 4, settings), SimulationError);
}

TEST(Weir, RefusesALossOfAll) {
  WeirSettings settings;
  settings.loss = 1;
  EXPECT_THROW(reduce(plan::make_star(2, kLink), 4, settings), SimulationError);
}

/// Two hosts: one step of reduce-scatter and one of all-gather, with half of 8 bytes each: a frame
/// of one element without a header, over two links. The time does not include the last
/// acknowledgement.
TEST(HostRing, TwoStepsOfTwoHosts) {
  const plan::Topology star = plan::make_star(2, kLink);
  const WeirResult result = run_host_ring(star, plan::every_node(star), 8, {});
  // In the second step the frame waits for the acknowledgement of the first, which was sent before.
  EXPECT_EQ(result.duration,
            (2 * (kFrame - 40 + 1000) + 2 * (kFrame - 40 + 1000) + kAnswer) * kNanosecond);
}

/// The second message's answer does not wait behind the third, which the link has not taken yet.
TEST(HostRing, AnswersOvertakeWhatTheLinkHasNotTaken) {
  const plan::Topology star = plan::make_star(2, kLink);
  WeirSettings settings;
  settings.host.message_bytes = 1024;
  const auto duration = [&](HostTraits::Choice choice) {
    settings.host.choice = choice;
    return run_host_ring(star, plan::every_node(star), 1 << 20, settings).duration;
  };
  settings.host.packets_in_flight = 8; // so that answers set the pace
  EXPECT_LT(duration(HostTraits::Choice::by_link), duration(HostTraits::Choice::at_once));
}

/// Two hosts: half of 8 bytes each way, then the sums. The sums wait for the other half's frame.
TEST(Halving, TwoStagesOfTwoHosts) {
  const plan::Topology star = plan::make_star(2, kLink);
  constexpr std::uint64_t kPiece = kFrame - 40;
  EXPECT_EQ(run_halving_doubling(star, plan::every_node(star), 8, {}).duration,
            (2 * (kPiece + 1000) + kAnswer + 2 * (kPiece + 1000)) * kNanosecond);
}

/// Of eight elements each host has half, a quarter, an eighth, and the same back; so it sends
/// 14 elements in six frames, and as many answers.
TEST(Halving, EachHostSendsTwiceWhatItDoesNotKeep) {
  const plan::Topology star = plan::make_star(8, kLink);
  const WeirResult result = run_halving_doubling(star, plan::every_node(star), 8 * 4, {});
  EXPECT_EQ(result.frames, 8U * 6);
  for (plan::LinkId link = 0; link < star.links().size(); link += 2) {
    ASSERT_TRUE(star.is_node(star.link(link).from));
    EXPECT_EQ(result.links[link].bytes, 14U * 4 + 6 * (kFrame - 44) + 6 * kAnswer) << link;
  }
}

/// Neighbours exchange the large pieces: in racks of two, uplinks carry a quarter of the tensor and
/// an eighth for each host, and the same back.
TEST(Halving, NeighboursExchangeTheLargePieces) {
  const plan::Topology topology = racks(2, 2, 1, kFastLink);
  constexpr std::uint64_t kBytes = 1 << 20;
  const WeirResult result = run_halving_doubling(topology, plan::every_node(topology), kBytes, {});
  for (plan::LinkId link = 0; link < topology.links().size(); ++link) {
    const plan::Link& ends = topology.link(link);
    const bool is_hosts = topology.is_node(ends.from) || topology.is_node(ends.to);
    const double data = is_hosts ? 2 * (0.5 + 0.25) * kBytes : 2.0 * 2 * 0.25 * kBytes;
    EXPECT_NEAR(static_cast<double>(result.links[link].bytes), data * 1.1, data * 0.02) << link;
  }
}

TEST(Halving, EndsWhateverIsLost) {
  const plan::Topology star = plan::make_star(8, kFastLink);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    WeirSettings settings;
    settings.loss = 1e-2;
    settings.seed = seed;
    const WeirResult result = run_halving_doubling(star, plan::every_node(star), 1 << 18, settings);
    EXPECT_GT(result.lost, 0U);
    EXPECT_GT(result.repeats, 0U);
  }
}

TEST(Halving, WantsAPowerOfTwo) {
  const plan::Topology star = plan::make_star(6, kLink);
  EXPECT_THROW(run_halving_doubling(star, plan::every_node(star), 64, {}), SimulationError);
}

} // namespace
} // namespace weir::netsim::netsim_weir_test
