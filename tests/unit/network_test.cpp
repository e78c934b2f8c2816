// SPDX-License-Identifier: BSD-3-Clause

/// The network of the tests: when frames arrive, and when a host's timer goes off.

#include "network/deadline_timer.hpp"
#include "network/link.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace weir::network {
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
  constexpr unsigned frames = 4'000'000;
  for (const std::uint32_t burst : {1, 2, 8}) {
    Dice dice(burst);
    Link link({.loss = kPercent, .mean_burst = burst});
    const Losses found = losses_of(link, frames, dice);
    EXPECT_NEAR(found.share, 0.01, 0.01 * 5 * 0.02) << burst;
    EXPECT_NEAR(found.mean_burst, burst, burst * 5 * 0.02) << burst;
  }
}

TEST(Link, LosesInBurstsThatAreRare) {
  constexpr unsigned frames = 40'000'000;
  Dice dice(1);
  Link link({.loss = 100, .mean_burst = 8});
  EXPECT_NEAR(losses_of(link, frames, dice).share, 1e-4, 1e-4 * 5 * 0.064);
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
} // namespace weir::network
