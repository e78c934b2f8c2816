// SPDX-License-Identifier: BSD-3-Clause

/// The network of the tests: when frames arrive, and when a host's timer goes off.

#include "network/deadline_timer.hpp"
#include "network/egress_queue.hpp"
#include "network/link.hpp"
#include "network/packet_pool.hpp"
#include "network/simulated_network.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::network::network_test {
namespace {

constexpr std::uint32_t kFrameBytes =
    976; // 1000 on the wire, with 8 of preamble, 4 of FCS, 12 of gap

Time arrival_of(Link& link, Time now, Dice& dice) {
  link.send(now, kFrameBytes);
  return link.arrival(dice);
}

TEST(Link, SendsOneFrameAfterTheOther) {
  Dice dice(1);
  Link link({.bits_per_ns = 10, .delay = 5000});
  EXPECT_EQ(arrival_of(link, 0, dice), 800U + 5000U); // 8000 bits at 10 a nanosecond
  EXPECT_EQ(arrival_of(link, 100, dice), 1600U + 5000U);
  EXPECT_EQ(arrival_of(link, 9000, dice), 9800U + 5000U);
}

TEST(Link, TakesNoTimeWithoutARate) {
  Dice dice(1);
  Link link({.delay = 5000});
  EXPECT_EQ(arrival_of(link, 7, dice), 5007U);
  EXPECT_EQ(arrival_of(link, 7, dice), 5008U) << "a frame came no later than the one before it";
}

TEST(Link, KeepsTheOrderUnlessItIsFree) {
  for (const auto order : {LinkTraits::Order::kept, LinkTraits::Order::free}) {
    Dice dice(1);
    Link link({.delay = 10, .spread = 1000, .order = order});
    bool has_overtaken = false;
    Time last = 0;
    for (Time now = 0; now < 1000; ++now) {
      const Time arrival = arrival_of(link, now, dice);
      has_overtaken = has_overtaken || arrival <= last;
      last = arrival;
      EXPECT_GE(arrival, now + 10);
    }
    EXPECT_EQ(has_overtaken, order == LinkTraits::Order::free);
  }
}

TEST(Link, SpreadsTheLateFramesAlone) {
  Dice dice(1);
  Link link({.delay = 10, .spread = 1000, .late = 10 * kPercent, .order = LinkTraits::Order::free});
  unsigned late = 0;
  for (Time now = 0; now < 10'000; ++now) {
    late += arrival_of(link, now, dice) == now + 10 ? 0 : 1;
  }
  EXPECT_NEAR(late, 1000, 150); // five standard deviations of 10,000 draws at a tenth
}

TEST(Link, LosesDataAndAnswersApart) {
  Dice dice(1);
  Link link({.loss = 0, .answer_loss = kAlways});
  EXPECT_FALSE(link.loses(Content::data, dice));
  EXPECT_TRUE(link.loses(Content::answer, dice));
  link.become_reliable();
  EXPECT_FALSE(link.loses(Content::answer, dice));
  link.swallow_answers();
  EXPECT_TRUE(link.loses(Content::answer, dice));
  EXPECT_FALSE(link.loses(Content::data, dice));
}

struct Losses {
  double share = 0;
  double mean_burst = 0;
};

Losses losses_of(Link& link, unsigned frames, Dice& dice) {
  unsigned lost = 0;
  unsigned bursts = 0;
  bool was_lost = false;
  for (unsigned frame = 0; frame < frames; ++frame) {
    const bool is_lost = link.loses(Content::data, dice);
    lost += is_lost ? 1 : 0;
    bursts += is_lost && !was_lost ? 1 : 0;
    was_lost = is_lost;
  }
  return {static_cast<double>(lost) / frames, static_cast<double>(lost) / bursts};
}

// Bounds of five standard deviations: lost frames come in groups whose lengths are geometric, so a
// mean of n of them strays by sqrt(burst * (burst - 1) / n), and the share by about
// sqrt(2 * burst / lost) of itself.
TEST(Link, LosesInBursts) {
  constexpr unsigned frames = test::rounds(4'000'000);
  const double sigma = 0.02 * std::sqrt(4e6 / frames);
  for (const std::uint32_t burst : {1, 2, 8}) {
    Dice dice(burst);
    Link link({.loss = kPercent, .mean_burst = burst});
    const Losses found = losses_of(link, frames, dice);
    EXPECT_NEAR(found.share, 0.01, 0.01 * 5 * sigma) << burst;
    EXPECT_NEAR(found.mean_burst, burst, burst * 5 * sigma) << burst;
  }
}

TEST(Link, LosesInBurstsThatAreRare) {
  constexpr unsigned frames = test::rounds(40'000'000);
  const double sigma = 0.064 * std::sqrt(4e7 / frames);
  Dice dice(1);
  Link link({.loss = 100, .mean_burst = 8});
  EXPECT_NEAR(losses_of(link, frames, dice).share, 1e-4, 1e-4 * 5 * sigma);
}

TEST(Link, EndsBurstsAndOutagesWhenItBecomesReliable) {
  Dice dice(1);
  Link link({.loss = kAlways, .mean_burst = 1000, .outages = {0, 1000, 1000}});
  EXPECT_TRUE(link.loses(Content::data, dice));
  link.become_reliable();
  EXPECT_FALSE(link.loses(Content::data, dice));
}

TEST(Link, FlapsByTheTimesAtWhichFramesLeave) {
  struct Row {
    Time sent;
    bool is_lost;
  };

  // A frame takes 800 ns. The link is down from 10,000 to 12,000 and from 15,000 to 17,000.
  Dice dice(1);
  Link link({.bits_per_ns = 10, .outages = {10'000, 5000, 2000}});
  for (const Row& row : {Row{0, false}, Row{9100, false}, Row{9200, true}, Row{11'000, true},
                         Row{11'900, false}, Row{14'300, true}, Row{16'300, false}}) {
    link.send(row.sent, kFrameBytes);
    EXPECT_EQ(link.loses(Content::data, dice), row.is_lost) << row.sent;
  }
}

struct Queued {
  explicit Queued(std::uint32_t bytes) : frame_bytes(bytes) {}

  bool add(frame::TrafficClass traffic) {
    Packet& packet = pool.make();
    packet.traffic = traffic;
    packet.length = frame_bytes;
    packet.ingress = next++;
    return queue.add(packet);
  }

  std::uint32_t frame_bytes;
  std::uint16_t next = 0; // every packet's number, in `ingress`
  PacketPool<Packet> pool{64};
  EgressQueue<Packet> queue;
};

// lib/datapath/lcore/tx_arbiter.hpp: other traffic has an eighth of the bytes while ring frames
// wait.
TEST(EgressQueue, LetsRingFramesGoFirst) {
  Queued queued(kFrameBytes);
  for (unsigned i = 0; i < 16; ++i) {
    queued.add(frame::TrafficClass::other);
  }
  for (unsigned i = 0; i < 16; ++i) {
    queued.add(frame::TrafficClass::ring);
  }
  std::string turns;
  std::uint16_t next_other = 0;
  std::uint16_t next_ring = 16;
  while (!queued.queue.is_empty()) {
    const Packet& packet = queued.queue.take();
    const bool is_ring = packet.traffic == frame::TrafficClass::ring;
    EXPECT_EQ(packet.ingress, is_ring ? next_ring++ : next_other++) << "not in the order of coming";
    turns += is_ring ? 'r' : 'o';
  }
  EXPECT_EQ(turns, "rrrrrrrorrrrrrrorroooooooooooooo");
}

TEST(EgressQueue, RefusesAFullClassAlone) {
  Queued queued(64);
  for (unsigned i = 0; i < 2048; ++i) {
    ASSERT_TRUE(queued.add(frame::TrafficClass::other));
  }
  EXPECT_FALSE(queued.add(frame::TrafficClass::other));
  EXPECT_TRUE(queued.add(frame::TrafficClass::ring));
  queued.queue.take();
  queued.queue.take();
  EXPECT_TRUE(queued.add(frame::TrafficClass::other));
}

/// Notes when frames come.
struct Listener : Station {
  explicit Listener(const SimulatedNetwork& network) : clock(network) {}

  void receive(std::span<std::uint8_t> /*frame*/) override { times.push_back(clock.now()); }

  void expire() override {}

  const SimulatedNetwork& clock;
  std::vector<Time> times;
};

wire::MacAddress mac_at(std::uint16_t port) {
  return {{0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(port)}};
}

std::vector<std::uint8_t> frame_between(std::uint16_t from, std::uint16_t to) {
  wire::EthernetHeader header;
  header.destination = mac_at(to);
  header.source = mac_at(from);
  header.type.set(0x88b5); // IEEE 802, local experimental
  std::vector<std::uint8_t> frame(kFrameBytes);
  std::memcpy(frame.data(), &header, sizeof header);
  return frame;
}

// Two stations send ten frames each to a third. A frame takes 800 ns on every link, and a link
// delays it by 5000. So the first comes after 11,600 ns, and then one every 800.
TEST(SimulatedNetwork, SendsWhatWaitsForALinkWithoutPause) {
  const LinkTraits link{.bits_per_ns = 10, .delay = 5000};
  SimulatedNetwork network({.links = {link, link, link}, .longest_frame = kFrameBytes}, {}, {});
  Listener listener(network);
  for (std::uint16_t port = 0; port < 3; ++port) {
    network.attach(port, listener);
    network.introduce(port, mac_at(port));
  }
  for (unsigned i = 0; i < 10; ++i) {
    network.send(0, frame_between(0, 2));
    network.send(1, frame_between(1, 2));
  }
  while (network.advance()) {
  }
  std::vector<Time> expected;
  for (unsigned i = 0; i < 20; ++i) {
    expected.push_back(11'600 + 800 * i);
  }
  EXPECT_EQ(listener.times, expected);
  EXPECT_EQ(network.refused(), 0U);
}

TEST(DeadlineTimer, AsksForAnEventWhereNoneComesEarlyEnough) {
  DeadlineTimer timer;
  EXPECT_EQ(timer.set(std::nullopt), std::nullopt);
  EXPECT_EQ(timer.set(endpoint_time(100)), Time{100});
  EXPECT_EQ(timer.set(endpoint_time(100)), std::nullopt);
  EXPECT_EQ(timer.set(endpoint_time(120)), std::nullopt);
  EXPECT_EQ(timer.set(endpoint_time(50)), Time{50});
  EXPECT_TRUE(timer.goes_off(50));
  EXPECT_EQ(timer.set(endpoint_time(200)), Time{200});
  EXPECT_FALSE(timer.goes_off(100)) << "the event of an earlier deadline counted";
  EXPECT_TRUE(timer.goes_off(200));
}

} // namespace
} // namespace weir::network::network_test
