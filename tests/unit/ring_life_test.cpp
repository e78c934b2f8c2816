// SPDX-License-Identifier: BSD-3-Clause

/// What a switch knows of a ring's use, and what becomes of one that drains, on the whole switch.

#include "stage/ring_life.hpp"
#include "switch_fixture.hpp"

#include <utility>

namespace weir::stage::ring_life_test {
namespace {

constexpr std::uint8_t kAck = 0x1f; // no limit of credits
constexpr std::uint64_t kS = 1'000'000'000;

JobSpec telling(JobSpec spec) {
  spec.first_own_qp = 0x500;
  return spec;
}

/// Three hosts that tell their queue pairs.
struct Scene {
  RingLife life() {
    return life_of(fixture.inside().worker(), 0, fixture.inside().rings().rings()[0].spec(),
                   fixture.now);
  }

  std::vector<Sent> send(std::uint16_t rank, const Built& frame) {
    return fixture.send(frame, job.port_of(rank));
  }

  /// The rank's receiver has so many packets, the hello included.
  void acknowledge(std::uint16_t rank, std::uint32_t packets) {
    const std::uint32_t psn = (job.first_psn_of(rank) + packets - 1) & 0xffffff;
    fixture.send(build(job.answer_to(rank, kAck, psn, packets)),
                 job.port_of(job.successor_of(rank)));
  }

  void acknowledge_all(std::uint32_t packets) {
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      acknowledge(rank, packets);
    }
  }

  std::mt19937 random{80};
  RingJob job{telling({.world = 3})};
  SwitchFixture fixture{{&job}};
};

/// Sends a second after the last packet, and says whether the ring was heard.
template <typename Send>
bool is_heard(Scene& s, Send&& send) {
  s.fixture.now = frame::Instant{s.fixture.now.ns + kS};
  send();
  return s.life().heard_ns == s.fixture.now.ns;
}

TEST(RingLife, EveryPacketOfAMembersQueuePairIsHeard) {
  Scene s;
  EXPECT_EQ(s.life().heard_ns, 0u);
  s.fixture.announce(s.job);
  EXPECT_EQ(s.life().heard_ns, 0u) << "other frames of the hosts";
  EXPECT_TRUE(is_heard(s, [&] { s.send(0, s.job.hello(0)); })) << "a hello that waits";
  EXPECT_TRUE(is_heard(s, [&] { s.send(0, s.job.hello(0)); })) << "the same again";
  EXPECT_TRUE(is_heard(s, [&] {
    s.send(1, s.job.hello(1));
    s.send(2, s.job.hello(2));
  })) << "the last hello";
  EXPECT_TRUE(is_heard(s, [&] { s.acknowledge(0, 1); })) << "an acknowledgement";
  EXPECT_TRUE(is_heard(s, [&] { s.acknowledge(0, 1); })) << "the same again";
  const Exchange made = random_exchange(s.random, s.job, 1, 700);
  EXPECT_TRUE(is_heard(s, [&] { s.send(0, made.packets[0][0]); })) << "a contribution";
  EXPECT_TRUE(is_heard(s, [&] { s.send(0, made.packets[0][0]); })) << "the same again";
  EXPECT_TRUE(is_heard(s, [&] { s.send(0, made.packets[0][1]); })) << "the message's middle";
  s.send(1, made.packets[1][0]);
  s.send(2, made.packets[2][0]);
  EXPECT_TRUE(is_heard(s, [&] { s.send(0, made.packets[0][0]); })) << "its result has left";
}

TEST(RingLife, WhatIsNotOfItsQueuePairsIsNotHeard) {
  Scene s;
  s.fixture.start(s.job);
  const Exchange made = random_exchange(s.random, s.job, 1, 700);
  EXPECT_FALSE(is_heard(s, [&] { s.send(0, between(s.job, 0, 1, 0x04, 64)); })) << "plain traffic";
  EXPECT_FALSE(is_heard(s, [&] { s.fixture.send(made.packets[0][0], s.job.port_of(1)); }))
      << "by another port";
  Built forged = made.packets[0][0];
  forged.bytes.back() ^= 1;
  EXPECT_FALSE(is_heard(s, [&] { s.send(0, forged); })) << "with a wrong ICRC";
  FrameSpec other_pair = s.job.answer_to(0, kAck, s.job.first_psn_of(0), 1);
  other_pair.qp = 0x999;
  EXPECT_FALSE(is_heard(s, [&] { s.fixture.send(build(other_pair), s.job.port_of(1)); }))
      << "an acknowledgement for another queue pair";
  s.job.restart(0);
  EXPECT_FALSE(is_heard(s, [&] { s.send(0, s.job.hello(0)); })) << "a hello of an older epoch";
}

TEST(RingLife, IsRememberedWhenTheJobIsOver) {
  Scene s;
  s.fixture.start(s.job);
  s.fixture.wait(kS);
  s.send(0, random_exchange(s.random, s.job, 1, 4).packets[0][0]);
  const std::uint64_t heard = s.fixture.now.ns;
  s.fixture.wait(kS);
  s.fixture.reset(0);
  EXPECT_EQ(s.life().heard_ns, heard);
  EXPECT_FALSE(s.life().has_incarnation);
}

TEST(RingLife, IsBusyWhileASlotFillsOrAResultIsNotAcknowledged) {
  Scene s;
  EXPECT_FALSE(s.life().is_busy());
  s.send(0, s.job.hello(0));
  EXPECT_FALSE(s.life().is_busy()) << "nothing is under way yet";
  s.fixture.announce(s.job);
  s.send(1, s.job.hello(1));
  s.send(2, s.job.hello(2));
  EXPECT_TRUE(s.life().is_busy()) << "the hellos' results";
  s.acknowledge_all(1);
  EXPECT_FALSE(s.life().is_busy());
  const Exchange made = random_exchange(s.random, s.job, 1, 4);
  s.send(0, made.packets[0][0]);
  s.send(2, made.packets[2][0]);
  EXPECT_TRUE(s.life().is_busy());
  EXPECT_EQ(s.life().filling, 1u);
  EXPECT_EQ(s.life().waited_for, std::vector<std::uint16_t>{1});
  s.send(1, made.packets[1][0]);
  EXPECT_EQ(s.life().filling, 0u);
  EXPECT_EQ(s.life().unacknowledged, (std::vector<std::uint16_t>{0, 1, 2}));
  s.acknowledge(0, 2);
  s.acknowledge(2, 2);
  EXPECT_EQ(s.life().unacknowledged, std::vector<std::uint16_t>{1});
  s.acknowledge(1, 2);
  EXPECT_FALSE(s.life().is_busy());
}

TEST(RingLife, ADeadReceiverOwesNothing) {
  Scene s;
  s.fixture.start(s.job);
  s.fixture.wait(kS / 2);
  EXPECT_TRUE(s.life().is_busy()) << "it may still answer";
  s.fixture.wait(kS);
  EXPECT_FALSE(s.life().is_busy());
}

TEST(RingLife, WithoutQueuePairsNoAcknowledgementIsExpected) {
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  EXPECT_FALSE(life_of(fixture.inside().worker(), 0, job.ring(), fixture.now).is_busy());
}

TEST(RingLife, IsNotBusyWhenPatienceIsOver) {
  Scene s;
  s.fixture.start(s.job);
  s.acknowledge_all(1);
  s.send(0, random_exchange(s.random, s.job, 1, 4).packets[0][0]);
  s.fixture.wait(600 * kS);
  EXPECT_TRUE(s.life().is_busy());
  s.fixture.wait(1);
  EXPECT_FALSE(s.life().is_busy());
  EXPECT_EQ(s.life().filling, 1u);
}

// ---- A ring that drains. ----

TEST(Drain, TheRunningIncarnationGoesOn) {
  Scene s;
  s.fixture.start(s.job);
  const Exchange made = random_exchange(s.random, s.job, 1, 700);
  s.send(0, made.packets[0][0]);
  s.fixture.drain(0);
  s.send(1, made.packets[1][0]);
  EXPECT_EQ(s.send(2, made.packets[2][0]).size(), 3u);
  EXPECT_FALSE(s.send(1, s.job.hello(1)).empty()) << "its own hello is answered from the cache";
  for (std::size_t k = 1; k < made.reduced.size(); ++k) {
    s.send(0, made.packets[0][k]);
    s.send(1, made.packets[1][k]);
    EXPECT_EQ(s.send(2, made.packets[2][k]).front(),
              result_sent(s.job, 0, made.packets[0][k], made.reduced[k]));
  }
  expect_completes(s.random, s.fixture, s.job, random_exchange(s.random, s.job, 2, 300));
  EXPECT_EQ(s.fixture.dropped(DropReason::ring_draining), 0u);
}

TEST(Drain, NoNewIncarnationBegins) {
  Scene s;
  s.fixture.start(s.job);
  s.fixture.drain(0);
  const std::uint64_t heard = s.life().heard_ns;
  s.fixture.now = frame::Instant{s.fixture.now.ns + kS};
  s.job.restart(2);
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(s.send(rank, s.job.hello(rank)).empty());
  }
  EXPECT_EQ(s.fixture.dropped(DropReason::ring_draining), 3u);
  EXPECT_EQ(s.fixture.ring().hellos, 1u);
  EXPECT_EQ(s.life().heard_ns, heard) << "who is refused does not keep the ring";
}

TEST(Drain, HellosThatWaitAreGivenUp) {
  Scene s;
  s.send(0, s.job.hello(0));
  s.send(1, s.job.hello(1));
  EXPECT_EQ(s.life().held, 2u);
  s.fixture.drain(0);
  EXPECT_EQ(s.fixture.dropped(DropReason::ring_draining), 2u);
  EXPECT_EQ(s.life().held, 0u);
  EXPECT_TRUE(s.send(2, s.job.hello(2)).empty());
  EXPECT_TRUE(s.send(0, s.job.hello(0)).empty()) << "a repeat";
  EXPECT_EQ(s.fixture.dropped(DropReason::ring_draining), 4u);
}

TEST(Drain, ASecondTimeChangesNothing) {
  Scene s;
  EXPECT_EQ(s.life().draining_since_ns, std::nullopt);
  s.fixture.drain(0);
  const std::uint64_t since = s.fixture.now.ns;
  s.fixture.wait(kS);
  s.fixture.drain(0);
  EXPECT_EQ(s.life().draining_since_ns, since);
  s.fixture.reset(0);
  EXPECT_EQ(s.life().draining_since_ns, since) << "a reset does not end it";
}

TEST(Drain, EndsWithTheRing) {
  Scene s;
  s.fixture.start(s.job);
  s.fixture.drain(0);
  s.fixture.withdraw(0);
  EXPECT_EQ(s.fixture.inside().add_ring(s.job.ring()), 0);
  s.job.restart(2);
  s.fixture.start(s.job);
  expect_completes(s.random, s.fixture, s.job, random_exchange(s.random, s.job, 1, 700));
}

} // namespace
} // namespace weir::stage::ring_life_test
