// SPDX-License-Identifier: BSD-3-Clause

/// The benchmark's all-reduces (tests/bench/allreduce_job.hpp): what its hosts say, and that each
/// kind of trouble does what it is called. Times are virtual, so they are the same on any machine.

#include "allreduce_job.hpp"
#include "network/simulated_network.hpp"
#include "simulated_host.hpp"
#include "wire/headers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::size_t kBytes = 1 << 20;

/// Keeps the last frame that it got.
struct Listener : network::Station {
  void receive(std::span<std::uint8_t> frame) override { heard.assign(frame.begin(), frame.end()); }

  void expire() override {}

  std::vector<std::uint8_t> heard;
};

TEST(AllReduceHosts, TellTheirQueuePairAndAckTimeout) {
  AllReduce wanted;
  SimulatedNetwork network(
      {.links = {2, lossy_link(0)}, .longest_frame = wanted.hosts.longest_frame()}, {}, {});
  SwitchExchange exchange(window_of(wanted, 0), {});
  SimulatedHost host(network, exchange, 0, wanted.ranks, wanted.hosts);
  Listener successor;
  network.attach(1, successor);
  network.introduce(1, mac_of(1));
  host.pump();
  while (successor.heard.empty() && network.advance()) {
  }
  constexpr std::size_t header_at = 14 + 20 + 8 + 12 + 16 + 4; // behind RETH and immediate
  ASSERT_GE(successor.heard.size(), header_at + sizeof(wire::InaHeader));
  wire::InaHeader hello;
  std::memcpy(&hello, &successor.heard[header_at], sizeof hello);
  EXPECT_EQ(hello.qp.get(), 0x100U);
  EXPECT_EQ(hello.ack_timeout, 7) << "4.096 us x 2^7 is 524 us, the nearest to 500";
}

double in_switch(const AllReduce& wanted) {
  const Outcome outcome = reduce_in_switch(wanted, 1);
  EXPECT_TRUE(outcome.is_finished);
  return static_cast<double>(outcome.duration);
}

double round_the_ring(const AllReduce& wanted) {
  const Outcome outcome = reduce_round_the_ring(wanted, 1);
  EXPECT_TRUE(outcome.is_finished);
  return static_cast<double>(outcome.duration);
}

TEST(AllReduceJob, FinishesWithOtherHosts) {
  for (const HostTraits& hosts :
       {HostTraits{.packets_in_flight = 16}, HostTraits{.window = 1},
        HostTraits{.message_bytes = 4000}, HostTraits{.mtu = 4096}, HostTraits{.mtu = 256}}) {
    const AllReduce wanted{.ranks = 3, .bytes = 100'000, .hosts = hosts};
    EXPECT_GT(in_switch(wanted), wanted.link_time());
    EXPECT_GT(round_the_ring(wanted), wanted.link_time());
  }
}

// Two ranks: each link carries the tensor once in both directions.
TEST(AllReduceJob, WaitsForALinkThatIsDown) {
  constexpr Time down = 300'000;
  AllReduce wanted{.bytes = kBytes, .first_link = lossy_link(0)};
  wanted.first_link->outages = {.first = 5000, .every = 1'000'000'000, .duration = down};
  EXPECT_GT(in_switch(wanted), down);
  EXPECT_GT(round_the_ring(wanted), down);
}

// On the ring everything shares a link as it comes: half of it is left, give or take some bursts.
// Through the switch, other traffic gets an eighth of the link's time (protocol I12).
TEST(AllReduceJob, SharesALinkWithOtherStations) {
  const AllReduce alone{.bytes = 4 * kBytes};
  AllReduce shared = alone;
  shared.foreign_load = 50 * network::kPercent;
  EXPECT_GT(round_the_ring(shared), 1.5 * round_the_ring(alone));
  EXPECT_GT(in_switch(shared), 1.02 * in_switch(alone));
  EXPECT_LT(in_switch(shared), 1.05 * 8 / 7 * in_switch(alone));
}

/// Docs/host.md: calls follow one another without a round trip among hosts.
TEST(AllReduceJob, SmallCallsShareWindows) {
  constexpr std::uint32_t calls = 500;
  const AllReduce one{.ranks = 8, .bytes = 4};
  AllReduce many = one;
  many.bytes *= calls;
  many.calls = calls;
  const double windows = std::ceil(double{calls} / one.hosts.window);
  EXPECT_LT(in_switch(many), 1.5 * windows * in_switch(one));
  EXPECT_GT(in_switch(many), 0.5 * windows * in_switch(one)) << "no window is full";
}

TEST(AllReduceJob, FailsWhereOneLinkLosesEverything) {
  const AllReduce wanted{.ranks = 4, .bytes = kBytes, .first_link = lossy_link(network::kAlways)};
  EXPECT_FALSE(reduce_in_switch(wanted, 1).is_finished);
  EXPECT_FALSE(reduce_round_the_ring(wanted, 1).is_finished);
}

TEST(AllReduceJob, RepeatsAfterLossOnOneLink) {
  const AllReduce wanted{.ranks = 4, .bytes = kBytes, .first_link = lossy_link(network::kPercent)};
  for (const auto reduce : {reduce_in_switch, reduce_round_the_ring}) {
    const Outcome outcome = reduce(wanted, 1);
    EXPECT_TRUE(outcome.is_finished);
    EXPECT_GT(outcome.repeated, 0U);
  }
}

} // namespace
} // namespace weir::bench
