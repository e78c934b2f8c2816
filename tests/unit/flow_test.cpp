// SPDX-License-Identifier: BSD-3-Clause

/// What the switch remembers of one connection, when it looks at its timers, and who claims which
/// queue pair (docs/protocol.md §9).

#include "conn/queue_pair_claims.hpp"
#include "recovery/flow.hpp"
#include "stage/schedule.hpp"
#include "support/frame_builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace weir::recovery::flow_test {
namespace {

constexpr std::uint32_t kHello = 0xfffffe; // PSNs wrap at once

Flow begun() {
  Flow flow;
  flow.begin(kHello, 0x500, 14, 1000);
  return flow;
}

TEST(Flow, MarksWrapWithThePsn) {
  Flow flow = begun();
  for (const std::uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u}) {
    EXPECT_FALSE(flow.is_past(psn));
    flow.left(psn, 2000);
    EXPECT_TRUE(flow.is_past(psn));
  }
  EXPECT_EQ(flow.next_out, 2u);
  EXPECT_EQ(flow.next_in, 2u) << "never behind what has left";
  EXPECT_TRUE(flow.is_past(kHello));
  EXPECT_TRUE(flow.is_outstanding());
  flow.acknowledge(2, 3000);
  EXPECT_FALSE(flow.is_outstanding());
}

TEST(Flow, APassBeginsWithAPsnNotAboveThePrevious) {
  Flow flow = begun();
  for (const std::uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u}) {
    flow.pass = Flow::Pass::resent;
    flow.heard(psn, 0);
    EXPECT_EQ(flow.pass, Flow::Pass::resent) << psn;
  }
  for (const std::uint32_t psn : {1u, 0xffffffu}) {
    flow.pass = Flow::Pass::resent;
    flow.hushed_until = flow.held_until = 99;
    EXPECT_TRUE(flow.heard(psn, 0));
    EXPECT_EQ(flow.pass, Flow::Pass::nothing) << psn;
    EXPECT_EQ(flow.hushed_until, 0u) << "it does not wait any more";
    EXPECT_EQ(flow.held_until, 0u);
    EXPECT_FALSE(flow.heard(psn, 0)) << "it did not wait";
  }
}

TEST(Flow, APassIsTheSwitchsOwnOnlyOnce) {
  Flow flow = begun();
  flow.heard(0, 0);
  flow.asked(1);
  flow.heard(0, 2);
  EXPECT_TRUE(flow.is_own_pass);
  flow.heard(0, 3);
  EXPECT_FALSE(flow.is_own_pass) << "the answer came already";
}

TEST(Flow, LacksNothingBelowAResultThatHasLeft) {
  Flow flow = begun();
  EXPECT_FALSE(flow.left(kHello, 0)) << "it lacked nothing";
  flow.furthest_in = 3; // 0xffffff to 1 are missing, then the sender leaves them out
  EXPECT_FALSE(flow.left(0, 0)) << "1 is missing";
  EXPECT_TRUE(flow.lacks_packets());
  EXPECT_TRUE(flow.left(2, 0));
  EXPECT_FALSE(flow.lacks_packets());
  EXPECT_FALSE(flow.left(3, 0)) << "it lacked nothing any more";
}

/// RFC 6298: the first sample gives it and four times its half; then the deviation is 3/4 of that.
TEST(Flow, TheTimerFollowsTheRoundTrip) {
  Flow flow = begun();
  EXPECT_EQ(flow.timer(), 1'000'000u) << "before a sample";
  flow.left(kHello, 1000);
  flow.time(kHello, 1000);
  flow.acknowledge(0xffffff, 101'000);
  EXPECT_EQ(flow.timer(), 300'000u);
  flow.left(0xffffff, 200'000);
  flow.time(0xffffff, 200'000);
  flow.acknowledge(0, 300'000);
  EXPECT_EQ(flow.timer(), 250'000u);
}

TEST(Flow, LateResendsDoubleTheTimerUntilASampleIsTaken) {
  Flow flow = begun();
  flow.left(kHello, 0);
  for (const std::uint64_t timer : {2'000'000u, 4'000'000u, 8'000'000u}) {
    flow.resends_late();
    EXPECT_EQ(flow.timer(), timer);
  }
  flow.acknowledge(0xffffff, 5000);
  EXPECT_EQ(flow.timer(), 8'000'000u) << "Karn: nothing was timed";
  EXPECT_EQ(flow.resends, 0u);
  flow.left(0xffffff, 6000);
  flow.time(0xffffff, 6000);
  flow.acknowledge(0, 7000);
  EXPECT_EQ(flow.timer(), 60'000u) << "the floor";
  for (int i = 0; i < 100; ++i) {
    flow.resends_late();
  }
  EXPECT_EQ(flow.timer(), std::uint64_t{60'000} << 16);
}

TEST(Flow, OnlyAnAcknowledgementOfThePacketStopsItsTime) {
  Flow flow = begun();
  flow.left(kHello, 0);
  flow.left(0xffffff, 0);
  flow.time(0xffffff, 0);
  flow.acknowledge(0xffffff, 500'000);
  EXPECT_EQ(flow.timer(), 1'000'000u);
  EXPECT_TRUE(flow.is_timing);
}

TEST(Flow, TellsWhatAConnectionWaitsFor) {
  Flow flow = begun();
  EXPECT_EQ(flow.awaited(0), Awaited::next_packet);
  flow.left(kHello, 0);
  EXPECT_EQ(flow.awaited(0), Awaited::acknowledgement);
  flow.own_qp = 0;
  EXPECT_EQ(flow.awaited(0), Awaited::next_packet) << "whose acknowledgements nobody can tell";
  flow.own_qp = 0x500;
  flow.furthest_in = 3; // past 0xffffff, which is missing
  EXPECT_EQ(flow.awaited(0), Awaited::lost_packet);
  flow.asked(10);
  EXPECT_EQ(flow.awaited(0), Awaited::repeat);
  flow.hushed_until = 50;
  EXPECT_EQ(flow.awaited(49), Awaited::end_of_wait);
  EXPECT_EQ(flow.awaited(50), Awaited::repeat);
  flow.acknowledge(0xffffff, 60); // whoever asks again begins with a NAK
  EXPECT_EQ(flow.awaited(60), Awaited::lost_packet);
}

TEST(Flow, ARunKeepsTheCountersOfTheOneBefore) {
  Flow flow = begun();
  flow.counters.naks = 3;
  flow.asks = 7;
  flow.begin(5, 0, 0, 9);
  EXPECT_EQ(flow.counters.naks, 3u);
  EXPECT_EQ(flow.asks, 0u);
}

/// IBTA §9.9 and docs/protocol.md §2a.
TEST(AckTimeout, IsAPowerOfTwoAndNoLessThanCode12) {
  EXPECT_EQ(ack_timeout_ns(14), 67'108'864u);
  EXPECT_EQ(ack_timeout_ns(12), 16'777'216u);
  EXPECT_EQ(ack_timeout_ns(1), 16'777'216u);
  EXPECT_EQ(ack_timeout_ns(31), 8'796'093'022'208u);
}

/// A sender with a shorter timeout than code 12 would use up its tries before the pause ends.
TEST(Flow, APauseIsHalfTheAckTimeoutAsToldIfThatIsLess) {
  Flow flow = begun();
  EXPECT_EQ(flow.answer_pause(), 1'000'000U) << "half of code 14 is more";
  flow.ack_timeout = 4;
  EXPECT_EQ(flow.answer_pause(), 32'768U);
}

/// Whatever was answered in vain, each of its tries brings an answer.
TEST(Flow, NoPauseIsLongerThanTheAckTimeoutAsTold) {
  Flow flow = begun();
  flow.left(kHello, 500);
  for (std::uint32_t answer = 0; answer < 2 * kTries; ++answer) {
    flow.answer();
  }
  EXPECT_EQ(flow.may_answer_at(), 500 + kLongestAnswerPause) << "code 14 is longer";
  flow.ack_timeout = 4;
  EXPECT_EQ(flow.may_answer_at(), 500U + 65'536U);
  flow.ack_timeout = 0;
  EXPECT_EQ(flow.may_answer_at(), 500 + kLongestAnswerPause) << "it was not told";
}

/// docs/protocol.md §11.6: a switch asks at once, then T apart, which is 60 us at least, and longer
/// each time.
TEST(Flow, ASwitchThatAsksAsItShouldWaitsForNoPause) {
  Flow flow = begun();
  flow.left(kHello, 500);
  EXPECT_EQ(flow.may_answer_switch_at(), 0U);
  for (std::uint64_t gap = kTimerFloor; gap <= 8 * kTimerFloor; gap *= 2) {
    flow.answer();
    EXPECT_EQ(flow.may_answer_switch_at(), 500 + gap / 2);
  }
  for (int answer = 0; answer < 50; ++answer) {
    flow.answer();
  }
  flow.ack_timeout = 14;
  EXPECT_EQ(flow.may_answer_switch_at(), 500 + kLongestAnswerPause);
}

TEST(Schedule, NamesTheRingsWhoseTimeHasCome) {
  stage::Schedule schedule(3);
  EXPECT_EQ(schedule.next(), stage::Schedule::kNever);
  schedule.expect(1, 50);
  schedule.expect(2, 30);
  schedule.expect(2, 40); // the earlier time holds
  EXPECT_EQ(schedule.next(), 30u);
  std::vector<std::uint16_t> polled;
  const auto act = [&](std::uint16_t ring) {
    polled.push_back(ring);
    return std::uint64_t{90};
  };
  schedule.poll(29, act);
  EXPECT_TRUE(polled.empty());
  schedule.poll(30, act);
  EXPECT_EQ(polled, (std::vector<std::uint16_t>{2}));
  EXPECT_EQ(schedule.next(), 50u);
  schedule.poll(60, act);
  EXPECT_EQ(polled, (std::vector<std::uint16_t>{2, 1}));
  EXPECT_EQ(schedule.next(), 90u);
  schedule.resize(4);
  schedule.expect(3, 10);
  EXPECT_EQ(schedule.next(), 10u);
}

/// Which rings are polled does not depend on how many there are, nor on their neighbours.
TEST(Schedule, FindsEveryRingAmongMany) {
  constexpr std::uint16_t rings = 1000;
  std::mt19937 random(1);
  stage::Schedule schedule(100);
  schedule.resize(rings);
  std::vector<std::uint64_t> expected(rings, stage::Schedule::kNever);
  for (std::uint64_t now = 0; now < 2000; ++now) {
    for (unsigned times = random() % 4; times > 0; --times) {
      const auto ring = static_cast<std::uint16_t>(random() % rings);
      const std::uint64_t time = now + random() % 300;
      schedule.expect(ring, time);
      expected[ring] = std::min(expected[ring], time);
    }
    if (random() % 8 == 0) {
      const auto ring = static_cast<std::uint16_t>(random() % rings);
      schedule.forget(ring);
      expected[ring] = stage::Schedule::kNever;
    }
    if (now < schedule.next()) {
      ASSERT_GT(*std::ranges::min_element(expected), now);
      continue;
    }
    std::vector<std::uint16_t> polled;
    schedule.poll(now, [&](std::uint16_t ring) {
      polled.push_back(ring);
      schedule.expect(static_cast<std::uint16_t>((ring + 31) % rings), now + 7);
      return ring % 3 == 0 ? now + 40 : stage::Schedule::kNever;
    });
    std::vector<std::uint16_t> due;
    for (std::uint16_t ring = 0; ring < rings; ++ring) {
      if (expected[ring] <= now) {
        due.push_back(ring);
        expected[(ring + 31) % rings] = std::min(expected[(ring + 31) % rings], now + 7);
        expected[ring] = ring % 3 == 0 ? now + 40 : stage::Schedule::kNever;
      }
    }
    ASSERT_EQ(polled, due) << now;
  }
}

TEST(QueuePairClaims, TwoClaimantsOnOneHostAreNotSole) {
  conn::QueuePairClaims claims(8, {});
  const auto name = claims.name_of(test::ip("10.0.0.1"), 0x500, 1);
  const auto elsewhere = claims.name_of(test::ip("10.0.0.2"), 0x500, 1);
  EXPECT_NE(name, elsewhere);
  EXPECT_NE(name, claims.name_of(test::ip("10.0.0.1"), 0x501, 1));
  EXPECT_NE(name, claims.name_of(test::ip("10.0.0.1"), 0x500, 2));
  EXPECT_FALSE(claims.is_sole(name)) << "nobody claims it";
  claims.add(name);
  claims.add(elsewhere);
  EXPECT_TRUE(claims.is_sole(name));
  claims.add(name);
  EXPECT_FALSE(claims.is_sole(name));
  EXPECT_TRUE(claims.is_sole(elsewhere));
  claims.remove(name);
  EXPECT_TRUE(claims.is_sole(name));
  claims.remove(name);
  EXPECT_FALSE(claims.is_sole(name));
}

} // namespace
} // namespace weir::recovery::flow_test
