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
