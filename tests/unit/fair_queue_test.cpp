// SPDX-License-Identifier: BSD-3-Clause

/// Rings that share a worker: turns, rates and room. The expected order comes from the paper's
/// pseudo code, written here with lists (Shreedhar and Varghese, SIGCOMM'95, Figure 3), and the
/// bounds from its theorems; the bucket's from counting nanosecond by nanosecond.

#include "stage/fair_queue.hpp"
#include "stage/token_bucket.hpp"
#include "support/sanitized.hpp"
#include "switch_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace weir::stage::fair_queue_test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// ---- The token bucket. ----

/// A billionth of a packet for each nanosecond and packet per second, nanosecond by nanosecond.
class SlowBucket {
 public:
  SlowBucket(std::uint64_t rate, std::uint64_t depth)
      : rate_(rate), full_(depth * kSecond), level_(full_) {}

  void pass(std::uint64_t ns) {
    for (; ns != 0; --ns) {
      level_ = std::min(full_, level_ + rate_);
    }
  }

  bool take() {
    const bool has = level_ >= kSecond;
    level_ -= has ? kSecond : 0;
    return has;
  }

 private:
  std::uint64_t rate_;
  std::uint64_t full_;
  std::uint64_t level_;
};

TEST(TokenBucket, IsTheSlowOne) {
  std::mt19937 random(1);
  for (const std::uint64_t rate :
       {1UL, 999UL, 1'000'000UL, 333'333'333UL, TokenBucket::kMostRate}) {
    for (const std::uint64_t depth : {1UL, 5UL, 300UL}) {
      std::uint64_t now = random();
      TokenBucket bucket(rate, depth, now);
      SlowBucket slow(rate, depth);
      for (unsigned i = 0; i < 2000; ++i) {
        const std::uint64_t passed = random() % (i % 7 == 0 ? 3000 : 5);
        now += passed;
        slow.pass(passed);
        bucket.refill(now);
        const bool has_token = bucket.has_token();
        ASSERT_EQ(has_token, slow.take()) << rate << " a second, " << depth << ", call " << i;
        if (has_token) {
          bucket.take();
        }
      }
    }
  }
}

TEST(TokenBucket, LosesNothingByRounding) {
  constexpr std::uint64_t rate = 300'007; // does not divide a second
  TokenBucket bucket(rate, 2, 0);         // one would lose what comes after the next one is full
  bucket.take();
  bucket.take();
  std::uint64_t passed = 0;
  for (std::uint64_t now = 1; now <= kSecond; now += 7) {
    bucket.refill(now);
    if (bucket.has_token()) {
      bucket.take();
      ++passed;
    }
  }
  EXPECT_NEAR(static_cast<double>(passed), static_cast<double>(rate), 1);
}

TEST(TokenBucket, GivesNothingForATimeThatIsOver) {
  TokenBucket bucket(1000, 1, kSecond);
  bucket.take();
  bucket.refill(kSecond - 1);
  EXPECT_FALSE(bucket.has_token());
  bucket.refill(kSecond + 1'000'000);
  EXPECT_TRUE(bucket.has_token());
}

TEST(TokenBucket, SurvivesAYearOfSilence) {
  TokenBucket bucket(TokenBucket::kMostRate, 64, 0);
  bucket.refill(365UL * 86'400 * kSecond);
  for (unsigned i = 0; i < 64; ++i) {
    ASSERT_TRUE(bucket.has_token());
    bucket.take();
  }
  EXPECT_FALSE(bucket.has_token());
}

// ---- Turns. ----

/// Frames with a length and no bytes.
class Frames {
 public:
  frame::Frame& make(std::uint32_t length) {
    frames_.push_back(std::make_unique<frame::Frame>());
    frames_.back()->length = length;
    return *frames_.back();
  }

 private:
  std::vector<std::unique_ptr<frame::Frame>> frames_;
};

std::uint32_t cost(const frame::Frame& frame) {
  return frame.length + FairQueue::kFrameCost;
}

/// The paper's Dequeue, a packet at a time.
class SlowQueue {
 public:
  void put(frame::Frame& frame, std::uint16_t ring_group) {
    if (lines_[ring_group].empty()) {
      active_.push_back(ring_group);
      deficit_[ring_group] = 0;
    }
    lines_[ring_group].push_back(&frame);
  }

  frame::Frame* take() {
    if (active_.empty()) {
      return nullptr;
    }
    const std::uint16_t ring_group = active_.front();
    if (!in_turn_) {
      deficit_[ring_group] += FairQueue::kQuantum;
    }
    std::deque<frame::Frame*>& line = lines_[ring_group];
    frame::Frame* frame = line.front();
    deficit_[ring_group] -= cost(*frame);
    line.pop_front();
    in_turn_ = !line.empty() && cost(*line.front()) <= deficit_[ring_group];
    if (!in_turn_) {
      active_.pop_front();
      if (!line.empty()) {
        active_.push_back(ring_group);
      }
    }
    return frame;
  }

 private:
  std::map<std::uint16_t, std::deque<frame::Frame*>> lines_;
  std::map<std::uint16_t, std::uint32_t> deficit_;
  std::list<std::uint16_t> active_;
  bool in_turn_ = false;
};

TEST(FairQueue, TakesInTheOrderOfTheSlowOne) {
  for (unsigned seed = 0; seed < test::rounds(50); ++seed) {
    std::mt19937 random(seed);
    Frames frames;
    FairQueue queue(1U << 16);
    queue.resize(20);
    SlowQueue slow;
    for (unsigned i = 0; i < 600; ++i) {
      for (unsigned put = random() % 40; put != 0; --put) {
        const auto ring_group = static_cast<std::uint16_t>(random() % (1 + random() % 20));
        frame::Frame& frame = frames.make(64 + random() % 9000);
        ASSERT_EQ(queue.put(frame, ring_group), std::nullopt);
        slow.put(frame, ring_group);
      }
      std::vector<frame::Frame*> taken(1 + random() % 37);
      taken.resize(queue.take(taken, {}));
      for (const frame::Frame* frame : taken) {
        ASSERT_EQ(frame, slow.take()) << "seed " << seed << " step " << i;
      }
    }
  }
}

/// Lemma 2 of the paper: over any time in which two lines always have frames, what they cost
/// differs by less than three quanta.
TEST(FairQueue, SharesCostNotFrames) {
  constexpr std::array<std::uint32_t, 3> lengths{64, 1100, 9000}; // by ring group
  Frames frames;
  FairQueue queue(1U << 15);
  queue.resize(lengths.size());
  std::map<std::uint32_t, std::uint64_t> served; // cost by length
  const auto fill = [&] {
    for (std::uint16_t ring_group = 0; ring_group < lengths.size(); ++ring_group) {
      while (queue.waiting(ring_group) < 1000) {
        ASSERT_EQ(queue.put(frames.make(lengths[ring_group]), ring_group), std::nullopt);
      }
    }
  };
  for (unsigned i = 0; i < 200; ++i) {
    fill();
    std::array<frame::Frame*, 29> taken{};
    ASSERT_EQ(queue.take(taken, {}), taken.size());
    for (const frame::Frame* frame : taken) {
      served[frame->length] += cost(*frame);
    }
    for (const std::uint32_t a : lengths) {
      for (const std::uint32_t b : lengths) {
        ASSERT_LT(served[a], served[b] + 3ULL * FairQueue::kQuantum) << a << " and " << b;
      }
    }
  }
}

/// Two thirds of the room for a line alone; a third of it stays for who comes later.
TEST(FairQueue, AFloodLeavesRoomForOthers) {
  Frames frames;
  constexpr std::uint32_t room = 300;
  FairQueue queue(room);
  queue.resize(2);
  for (unsigned i = 0; i < 1000; ++i) {
    const auto reason = queue.put(frames.make(100), 0);
    EXPECT_EQ(reason, i < 2 * room / 3 ? std::nullopt : std::optional(DropReason::ring_queue_full));
  }
  EXPECT_EQ(queue.counters_of(0).queue_full, 1000U - 2 * room / 3);
  for (unsigned i = 0; i < room / 6; ++i) {
    EXPECT_EQ(queue.put(frames.make(100), 1), std::nullopt);
  }
  EXPECT_EQ(queue.counters_of(1).queue_full, 0U);
}

TEST(FairQueue, WithoutRoomTakesNothing) {
  Frames frames;
  FairQueue queue(0);
  queue.resize(1);
  EXPECT_EQ(queue.put(frames.make(100), 0), DropReason::ring_queue_full);
  EXPECT_TRUE(queue.is_empty());
}

// ---- Rates. ----

frame::Instant at(std::uint64_t ns) {
  return frame::Instant{ns};
}

/// Takes all that may go now.
std::vector<frame::Frame*> take_all(FairQueue& queue, std::uint64_t ns) {
  std::vector<frame::Frame*> frames(queue.size() + 1);
  frames.resize(queue.take(frames, at(ns)));
  return frames;
}

TEST(FairQueue, ATenantsLinesShareItsRate) {
  constexpr std::uint64_t rate = 10'000;
  Frames frames;
  FairQueue queue(4096);
  queue.resize(3);
  queue.set_rate(7, rate, at(0));
  queue.set_tenant(0, 7);
  queue.set_tenant(1, 7); // ring group 2 has no tenant
  std::array<std::uint64_t, 3> served{};
  for (std::uint64_t ns = 0; ns < kSecond; ns += 100'000) {
    for (std::uint16_t ring_group = 0; ring_group < 3; ++ring_group) {
      for (unsigned i = 0; i < 4; ++i) { // 40,000 a second
        queue.put(frames.make(100U + ring_group), ring_group);
      }
    }
    for (const frame::Frame* frame : take_all(queue, ns)) {
      ++served[frame->length - 100];
    }
  }
  EXPECT_NEAR(static_cast<double>(served[0] + served[1]), rate, FairQueue::kSmallestBurst + 1);
  EXPECT_NEAR(static_cast<double>(served[0]), static_cast<double>(served[1]), 10);
  EXPECT_EQ(served[2], 40'000U) << "who has no limit waits for nobody's tokens";
  EXPECT_EQ(queue.counters_of(2).over_rate + queue.counters_of(2).queue_full, 0U);
}

/// Line 0 always has frames; ring group 1 has something to send again, and ring group 2 both, as
/// the worker's rounds are: lines first.
TEST(FairQueue, WhatIsSentAgainGetsItsTurnOfATenantsTokens) {
  constexpr std::uint64_t rate = 10'000;
  Frames frames;
  FairQueue queue(4096);
  queue.resize(3);
  queue.set_rate(0, rate, at(0));
  std::array<std::uint64_t, 3> served{};
  std::array<std::uint64_t, 3> again{};
  for (std::uint16_t ring_group = 0; ring_group < 3; ++ring_group) {
    queue.set_tenant(ring_group, 0);
  }
  for (std::uint64_t ns = 0; ns < kSecond; ns += 20'000) { // five rounds for each token
    for (const std::uint16_t ring_group : {0, 2}) {
      queue.put(frames.make(100U + ring_group), ring_group);
    }
    for (const frame::Frame* frame : take_all(queue, ns)) {
      ++served[frame->length - 100];
    }
    for (const std::uint16_t ring_group : {1, 2}) {
      if (queue.may_send_again(ring_group, at(ns))) {
        queue.charge(ring_group, 1000);
        ++again[ring_group];
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(served[0]), rate / 3., 70) << "the burst is line 0's and 2's";
  EXPECT_NEAR(static_cast<double>(again[1]), rate / 3., 70);
  EXPECT_NEAR(static_cast<double>(again[2]), rate / 6., 70) << "in turn with its frames";
  EXPECT_NEAR(static_cast<double>(served[2]), rate / 6., 70);
}

/// Both lines always have frames. Each frame of line 1 costs as much as three more by its operator.
TEST(FairQueue, WorkThatIsChargedTakesFromItsLineAlone) {
  constexpr std::uint32_t bytes = 952;
  constexpr std::uint64_t frame_cost = bytes + FairQueue::kFrameCost;
  Frames frames;
  FairQueue queue(4096);
  queue.resize(2);
  std::array<unsigned, 2> served{};
  for (unsigned round = 0; round < 4000; ++round) {
    for (const std::uint16_t ring_group : {0, 1}) {
      while (queue.waiting(ring_group) < 8) {
        frame::Frame& frame = frames.make(bytes);
        frame.ingress = ring_group;
        queue.put(frame, ring_group);
      }
    }
    std::array<frame::Frame*, 1> one{};
    ASSERT_EQ(queue.take(one, at(0)), 1U);
    ++served[one[0]->ingress];
    if (one[0]->ingress == 1) {
      queue.charge_work(1, 3 * frame_cost / FairQueue::kBytesPerNs);
    }
  }
  EXPECT_NEAR(served[0], 3200, 10);
  EXPECT_NEAR(served[1], 800, 10);
}

TEST(FairQueue, WhoWaitsToSendAgainIsForgottenWithItsGroup) {
  Frames frames;
  FairQueue queue(64);
  queue.resize(2);
  queue.set_rate(0, 1000, at(0));
  queue.set_tenant(0, 0);
  while (queue.passes(0, at(0))) {
  }
  EXPECT_FALSE(queue.may_send_again(0, at(0)));
  queue.set_tenant(0, FairQueue::kNoTenant);
  queue.regroup([](const frame::Frame&) { return std::uint16_t{0}; });
  EXPECT_TRUE(queue.may_send_again(0, at(0)));
  queue.charge(0, 100);
  EXPECT_FALSE(queue.put(frames.make(100), 0));
  EXPECT_FALSE(queue.put(frames.make(100), 1));
  EXPECT_EQ(take_all(queue, 0).size(), 2U);
}

/// 20 ms of 10,000 a second are 200 frames; the 201st is one too many.
TEST(FairQueue, ALineOverItsRateIsShort) {
  Frames frames;
  FairQueue queue(4096);
  queue.resize(1);
  queue.set_rate(0, 10'000, at(0));
  queue.set_tenant(0, 0);
  for (unsigned i = 0; i < 300; ++i) {
    EXPECT_EQ(queue.put(frames.make(100), 0),
              i < 200 ? std::nullopt : std::optional(DropReason::tenant_rate));
  }
  EXPECT_EQ(queue.counters_of(0).over_rate, 100U);
  EXPECT_EQ(queue.counters_of(0).queue_full, 0U);
}

TEST(FairQueue, PassesOnlyWhomNothingHolds) {
  Frames frames;
  FairQueue queue(64);
  queue.resize(3);
  queue.set_rate(0, 1000, at(0));
  queue.set_tenant(0, 0);
  for (unsigned i = 0; i < FairQueue::kSmallestBurst; ++i) {
    EXPECT_TRUE(queue.passes(0, at(0)));
  }
  EXPECT_FALSE(queue.passes(0, at(0))) << "no token is left";
  EXPECT_FALSE(queue.put(frames.make(100), 0));
  EXPECT_TRUE(queue.passes(1, at(0))) << "who waits for a token holds up nobody else";
  EXPECT_FALSE(queue.passes(0, at(kSecond))) << "it would overtake its own frame";
  EXPECT_FALSE(queue.put(frames.make(100), 1));
  EXPECT_FALSE(queue.passes(2, at(0))) << "others could go and wait";
  EXPECT_EQ(take_all(queue, kSecond).size(), 2U);
  EXPECT_TRUE(queue.passes(0, at(kSecond)));
}

TEST(FairQueue, AllLinesComeBackForWhomThereIsAToken) {
  Frames frames;
  FairQueue queue(64);
  queue.resize(3);
  queue.set_rate(0, 1000, at(0));
  for (std::uint16_t ring_group = 0; ring_group < 3; ++ring_group) {
    queue.set_tenant(ring_group, 0);
  }
  while (queue.passes(0, at(0))) {
  }
  for (std::uint16_t ring_group = 0; ring_group < 3; ++ring_group) {
    EXPECT_FALSE(queue.put(frames.make(100), ring_group));
    EXPECT_FALSE(queue.put(frames.make(100), ring_group));
  }
  EXPECT_EQ(take_all(queue, 0).size(), 0U);
  EXPECT_EQ(take_all(queue, 2'000'000).size(), 2U);
  EXPECT_EQ(take_all(queue, 6'000'000).size(), 4U);
}

TEST(FairQueue, FramesFollowTheirGroups) {
  Frames frames;
  FairQueue queue(64);
  queue.resize(3);
  std::vector<frame::Frame*> first;
  for (std::uint32_t i = 0; i < 20; ++i) {
    frame::Frame& frame = frames.make(100 + i);
    frame.pair = static_cast<std::uint16_t>(i % 2);
    ASSERT_FALSE(queue.put(frame, frame.pair));
  }
  queue.regroup([](const frame::Frame&) { return std::uint16_t{2}; });
  EXPECT_EQ(queue.waiting(2), 20U);
  std::array<std::uint32_t, 2> last{};
  for (const frame::Frame* frame : take_all(queue, 0)) {
    EXPECT_GT(frame->length, last[frame->pair]) << "frames of one pair stay in order";
    last[frame->pair] = frame->length;
  }
  EXPECT_TRUE(queue.is_empty());
}

/// In the circle, and aside.
TEST(FairQueue, LinesOfRegionsStandBehindThoseOfRingGroups) {
  Frames frames;
  FairQueue queue(64);
  queue.resize(1);
  queue.resize_for_regions(2);
  EXPECT_EQ(queue.line_of_strangers(), 1U);
  EXPECT_EQ(queue.line_of_region(1), 3U);
  queue.set_rate(0, 1000, at(0));
  queue.set_tenant(queue.line_of_region(1), 0);
  while (queue.passes(queue.line_of_region(1), at(0))) {
  }
  std::vector<frame::Frame*> expected;
  for (std::uint16_t line = 0; line < 4; ++line) {
    expected.push_back(&frames.make(100));
    EXPECT_FALSE(queue.put(*expected.back(), line));
  }
  queue.resize(5);
  EXPECT_EQ(queue.ring_groups(), 5U);
  EXPECT_EQ(queue.regions(), 2U);
  EXPECT_EQ(queue.waiting(1), 0U);
  EXPECT_EQ(queue.waiting(queue.line_of_region(1)), 1U);
  EXPECT_EQ(queue.counters_of(queue.line_of_strangers()).waited, 1U);
  EXPECT_EQ(queue.rate_of(queue.line_of_region(1)), 1000U);
  std::vector<frame::Frame*> taken = take_all(queue, 0);
  EXPECT_EQ(taken.size(), 3U) << "one stands aside";
  for (frame::Frame* frame : take_all(queue, 2'000'000)) {
    taken.push_back(frame);
  }
  EXPECT_EQ(taken, expected);
}

// ---- In the switch. ----

constexpr std::uint32_t kRoom = 128;
constexpr unsigned kServed = 8; // frames that the worker can do between two bursts

/// Two jobs on one worker. Rank 0 of the first one repeats a packet without end.
struct TwoJobs {
  TwoJobs() {
    fixture.start(flooder);
    fixture.start(victim);
  }

  void flood(unsigned frames) {
    const Built repeat = flooder.message(0, 1, Bytes(200, 1)).front();
    for (unsigned i = 0; i < frames; ++i) {
      fixture.send(repeat, flooder.port_of(0));
    }
  }

  RingJob flooder{JobSpec{.ring = 1}};
  RingJob victim{
      JobSpec{.ring = 2, .world = 4, .window = 8, .session = kSession + 1, .network_id = 1}};
  SwitchFixture fixture{{&flooder, &victim}, {}, nullptr, kRoom};
};

TEST(FairShares, AFloodTakesNothingFromAnotherRing) {
  TwoJobs jobs;
  std::uint64_t results = 0;
  for (std::uint32_t id = 1; id <= 50; ++id) {
    jobs.fixture.inside().queue().expect(Backlog::likely);
    jobs.flood(10 * jobs.victim.spec().world);
    for (std::uint16_t rank = 0; rank < jobs.victim.spec().world; ++rank) {
      jobs.fixture.send(jobs.victim.message(rank, id, Bytes(200, 1)).front(),
                        jobs.victim.port_of(rank));
    }
    jobs.fixture.serve(kServed);
    results = jobs.fixture.ring(1).results;
  }
  jobs.fixture.serve(2 * kRoom);
  EXPECT_EQ(jobs.fixture.ring(1).results, 4U + 50 * 4) << "with those of the hellos; " << results;
  const auto full = static_cast<std::size_t>(DropReason::ring_queue_full);
  EXPECT_EQ(jobs.fixture.ring(1).dropped[full], 0U);
  EXPECT_GT(jobs.fixture.ring(0).dropped[full], 1000U);
  EXPECT_EQ(jobs.fixture.ring(0).dropped[full], jobs.fixture.dropped(DropReason::ring_queue_full));
}

TEST(FairShares, NothingWaitsWhileTheWorkerKeepsUp) {
  TwoJobs jobs;
  jobs.flood(100);
  EXPECT_EQ(jobs.fixture.accounting().queued, 0U);
  EXPECT_EQ(jobs.fixture.dropped(DropReason::ring_queue_full), 0U);
  EXPECT_EQ(jobs.fixture.inside().serve(10, jobs.fixture.now), 0U);
}

TEST(FairShares, AConnectionsPacketsStayInOrder) {
  TwoJobs jobs;
  std::vector<Built> packets = jobs.victim.message(0, 1, Bytes(700, 1));
  ASSERT_EQ(packets.size(), 3U);
  jobs.fixture.inside().queue().expect(Backlog::likely);
  jobs.fixture.send(packets[0], jobs.victim.port_of(0));
  jobs.fixture.inside().queue().expect(Backlog::none);
  jobs.fixture.send(packets[1], jobs.victim.port_of(0)); // does not overtake
  EXPECT_EQ(jobs.fixture.accounting().queued, 2U);
  jobs.fixture.serve(2);
  jobs.fixture.send(packets[2], jobs.victim.port_of(0));
  EXPECT_EQ(jobs.fixture.accounting().queued, 0U);
  EXPECT_EQ(jobs.fixture.ring(1).contributions, 4U + 3) << "with the hellos";
}

TEST(FairShares, WhatWaitsIsDroppedByNameAtTheEnd) {
  TwoJobs jobs;
  jobs.fixture.inside().queue().expect(Backlog::likely);
  jobs.flood(5);
  EXPECT_EQ(jobs.fixture.accounting().queued, 5U);
  jobs.fixture.inside().queue().discard(jobs.fixture.now);
  EXPECT_EQ(jobs.fixture.accounting().queued, 0U);
  EXPECT_EQ(jobs.fixture.dropped(DropReason::ring_queue_full), 5U);
  EXPECT_TRUE(jobs.fixture.accounting().balances());
}

/// Frames of a withdrawn ring's hosts are then those of neighbours in no ring: none passes raw.
TEST(FairShares, WhatWaitsIsJudgedByTheRingsOfItsTurn) {
  TwoJobs jobs;
  jobs.fixture.inside().queue().expect(Backlog::likely);
  jobs.flood(5);
  jobs.fixture.withdraw(0);
  EXPECT_EQ(jobs.fixture.accounting().queued, 5U);
  EXPECT_TRUE(jobs.fixture.serve(10).empty());
  EXPECT_EQ(jobs.fixture.accounting().queued, 0U);
  EXPECT_EQ(jobs.fixture.dropped(DropReason::unannounced), 5U);
}

/// A ring whose hosts are neighbours in both others makes one group of the two.
TEST(FairShares, FramesWaitOnWhenAnotherRingJoinsTwoGroups) {
  TwoJobs jobs;
  jobs.fixture.inside().queue().expect(Backlog::likely);
  std::vector<Built> packets = jobs.victim.message(0, 1, Bytes(700, 1));
  jobs.flood(3);
  jobs.fixture.send(packets[0], jobs.victim.port_of(0));
  ring::RingSpec both = jobs.victim.ring();
  both.id = 3;
  both.members.resize(2);
  both.members.push_back(jobs.flooder.ring().members[0]);
  both.members.push_back(jobs.flooder.ring().members[1]);
  ASSERT_EQ(jobs.fixture.inside().rings().ring_group_of(1), 1U);
  jobs.fixture.inside().add_ring(both);
  ASSERT_EQ(jobs.fixture.inside().rings().ring_group_of(1), 0U) << "a test of packets that move";
  jobs.fixture.send(packets[1], jobs.victim.port_of(0));
  EXPECT_EQ(jobs.fixture.accounting().queued, 5U);
  jobs.fixture.serve(10);
  EXPECT_EQ(jobs.fixture.accounting().queued, 0U);
  EXPECT_EQ(jobs.fixture.ring(1).contributions, 4U + 2) << "with the hellos";
}

TEST(FairShares, ATenantsRateHoldsForItsRing) {
  TwoJobs jobs;
  ASSERT_EQ(jobs.fixture.inside().rings().ring_group_of(0), 0U);
  jobs.fixture.inside().queue().set_shares({.rates = {1000}, .tenants = {0}}, jobs.fixture.now);
  jobs.flood(500);
  EXPECT_EQ(jobs.fixture.accounting().queued, FairQueue::kShortestLine);
  const auto over = static_cast<std::size_t>(DropReason::tenant_rate);
  EXPECT_EQ(jobs.fixture.ring(0).dropped[over],
            500 - FairQueue::kSmallestBurst - FairQueue::kShortestLine);
  jobs.fixture.send(jobs.victim.message(0, 1, Bytes(200, 1)).front(), jobs.victim.port_of(0));
  EXPECT_EQ(jobs.fixture.accounting().queued, FairQueue::kShortestLine) << "who has no rate passes";
  jobs.fixture.now = frame::Instant{jobs.fixture.now.ns + 10'000'000};
  jobs.fixture.serve(100);
  EXPECT_EQ(jobs.fixture.accounting().queued, FairQueue::kShortestLine - 10);
}

} // namespace
} // namespace weir::stage::fair_queue_test
