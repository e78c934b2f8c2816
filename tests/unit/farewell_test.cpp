// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §2a, "Told": what the switch says to the ranks of a run when another one begins
/// on their ring, or the ring is reset or withdrawn.

#include "stage/farewells.hpp"
#include "switch_fixture.hpp"

#include <functional>

namespace weir::stage::farewell_test {
namespace {

constexpr std::uint8_t kAck = 0x1f; // no limit of credits
constexpr std::uint8_t kRnrNak = 0x21;
constexpr std::uint8_t kSequenceError = 0x60;
constexpr std::uint8_t kTaken = 0x62;   // remote access error (IBTA §9.7.5.2)
constexpr std::uint8_t kGivenUp = 0x61; // invalid request (likewise)
constexpr std::uint64_t kMs = 1'000'000;

using Frames = std::vector<Sent>;

JobSpec three_ranks() {
  return {.world = 3, .first_psn = 0xfffffb, .first_own_qp = 0x500}; // rank 0's wrap in message 2
}

/// The first run has done message 1, and all is acknowledged. The second one's ranks have other
/// queue pairs on the same hosts.
struct TwoRuns {
  TwoRuns() {
    fixture.start(first);
    const Exchange one = random_exchange(random, first, 1, 700);
    expect_completes(random, fixture, first, one);
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      fixture.send(build(first.answer_to(rank, kAck, psn(rank, 3), 2)),
                   first.port_of(first.successor_of(rank)));
    }
    second.restart(1);
  }

  /// PSN of the n-th packet behind the first run's hello. Message 1 has three.
  std::uint32_t psn(std::uint16_t rank, std::uint32_t n) const {
    return (first.first_psn_of(rank) + n) & 0xffffff;
  }

  /// In the style of the receiver's newest answer: all up to message 1 is acknowledged.
  Sent told(std::uint16_t rank, std::uint8_t why = kTaken) const {
    return {build(first.answer_to(rank, why, psn(rank, 4), 2)).bytes,
            l2::PortSet{1} << first.port_of(rank), Departure::consumed};
  }

  /// In the same style: all up to message 1 is acknowledged again.
  Sent acknowledged(std::uint16_t rank) const {
    return {build(first.answer_to(rank, kAck, psn(rank, 3), 2)).bytes,
            l2::PortSet{1} << first.port_of(rank), Departure::consumed};
  }

  /// What leaves when the last rank says hello, without the hellos' results.
  Frames begin(const RingJob& run) {
    Frames sent;
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      sent = fixture.send(run.hello(rank), run.port_of(rank));
    }
    EXPECT_GE(sent.size(), 3u);
    sent.resize(sent.size() - 3);
    return sent;
  }

  Built next(std::uint16_t rank) { return first.message(rank, 2, Bytes(700, 1))[0]; }

  /// The first run's rank sends its next message, some time after it was told.
  Frames send_next(std::uint16_t rank) {
    fixture.now = frame::Instant{fixture.now.ns + kMs};
    return fixture.send(next(rank), first.port_of(rank));
  }

  std::mt19937 random{41};
  RingJob first{three_ranks()};
  RingJob second{first};
  SwitchFixture fixture{{&first}};
};

TEST(Farewell, EachRankIsToldWhenItSendsAfterAnotherRunHasBegun) {
  TwoRuns two;
  EXPECT_TRUE(two.fixture.send(two.next(1), 1).empty()) << "held, and dropped then";
  EXPECT_TRUE(two.begin(two.second).empty()) << "nobody is told unasked";
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(two.send_next(rank), Frames{two.told(rank)});
    EXPECT_EQ(two.fixture.ring().told, rank + 1u);
  }
  expect_completes(two.random, two.fixture, two.second,
                   random_exchange(two.random, two.second, 1, 700));
}

TEST(Farewell, WhoHasNotHeardItIsToldAgainWhenItSends) {
  TwoRuns two;
  two.begin(two.second);
  EXPECT_EQ(two.send_next(2), Frames{two.told(2)});
  EXPECT_TRUE(two.fixture.send(two.next(2), 2).empty()) << "a window of packets is told once";
  EXPECT_EQ(two.send_next(2), Frames{two.told(2)});
  EXPECT_EQ(two.fixture.send(two.first.message(0, 2, Bytes(700, 1))[1], 0), Frames{two.told(0)})
      << "a MIDDLE too";
  EXPECT_EQ(two.fixture.send(two.first.hello(1), 1), Frames{two.acknowledged(1)}) << "a hello too";
  EXPECT_EQ(two.fixture.dropped(DropReason::wrong_session), 3u);
  EXPECT_EQ(two.fixture.dropped(DropReason::dead_connection), 1u);
  EXPECT_EQ(two.fixture.dropped(DropReason::retired_nonce), 1u);
}

/// A requester ignores a NAK of what it has not sent (IBTA §9.7.6.1). One that has lost the last
/// acknowledgements has perhaps sent nothing behind them.
TEST(Farewell, WhoHasLostAcknowledgementsIsAcknowledgedFirst) {
  TwoRuns two;
  two.begin(two.second);
  const Built last = two.first.message(2, 1, Bytes(700, 1))[2];
  two.fixture.now = frame::Instant{two.fixture.now.ns + kMs};
  EXPECT_EQ(two.fixture.send(last, 2), Frames{two.acknowledged(2)});
  EXPECT_TRUE(two.fixture.send(last, 2).empty()) << "a window of packets is acknowledged once";
  EXPECT_EQ(two.fixture.ring().told, 0u);
  EXPECT_EQ(two.fixture.send(two.next(2), 2), Frames{two.told(2)}) << "at once";
  EXPECT_EQ(two.fixture.ring().told, 1u);
  two.fixture.now = frame::Instant{two.fixture.now.ns + kMs};
  EXPECT_EQ(two.fixture.send(last, 2), Frames{two.acknowledged(2)});
}

/// Message 2 has left too, and is acknowledged by what passes when the second run has begun.
struct LateAnswers : TwoRuns {
  LateAnswers() {
    expect_completes(random, fixture, first, random_exchange(random, first, 2, 700));
    EXPECT_TRUE(begin(second).empty());
    fixture.now = frame::Instant{fixture.now.ns + kMs};
  }

  /// An answer to rank 0 with the PSN of the n-th packet behind its hello.
  Built answer(std::uint8_t syndrome, std::uint32_t n) const {
    return build(first.answer_to(0, syndrome, psn(0, n), 10 + n));
  }

  /// It reaches the rank, whatever the switch makes of it.
  void pass(const Built& answer) {
    EXPECT_EQ(fixture.send(answer, 1), (Frames{{answer.bytes, 1, Departure::forwarded}}));
  }

  /// What rank 0 hears to the n-th packet behind its hello.
  Frames heard_of(std::uint32_t n) {
    const std::uint32_t message = (n + 2) / 3; // of three packets
    return fixture.send(first.message(0, message, Bytes(700, 1))[(n - 1) % 3], 0);
  }

  static Frames said(const Built& answer) {
    return {{answer.bytes, l2::PortSet{1}, Departure::consumed}};
  }
};

/// The requester goes on from there. A NAK of what is acknowledged is a duplicate to it, which it
/// ignores (IBTA §9.7.6.1).
TEST(Farewell, AcknowledgementsThatWereUnderWayCount) {
  struct Row {
    const char* description;
    std::vector<std::pair<std::uint8_t, std::uint32_t>> answers; // syndrome, PSN
    std::uint32_t lowest;                                        // that is not acknowledged
    std::uint32_t sequence;                                      // of the newest answer
  };

  const std::vector<Row> rows{
      {"none", {}, 4, 2},
      {"one", {{kAck, 4}}, 5, 14},
      {"one that repeats the last", {{kAck, 3}}, 4, 13},
      {"an old one", {{kAck, 2}}, 4, 2},
      {"two in order", {{kAck, 4}, {kAck, 5}}, 6, 15},
      {"two in another order", {{kAck, 5}, {kAck, 4}}, 6, 15},
      {"twice the same", {{kAck, 4}, {kAck, 4}}, 5, 14},
      {"one for all", {{kAck, 6}}, 7, 16},
      {"of what has not left", {{kAck, 7}}, 4, 2},
      {"half the PSNs away", {{kAck, 0x800000}}, 4, 2},
      {"a NAK of a sequence error", {{kSequenceError, 5}}, 5, 15},
      {"an ACK and a NAK above it", {{kAck, 4}, {kSequenceError, 6}}, 6, 16},
      {"a NAK and an ACK of what it asks for", {{kSequenceError, 5}, {kAck, 6}}, 7, 16},
      {"an RNR NAK", {{kRnrNak, 6}}, 6, 16},
      {"a NAK that ends the queue pair", {{kTaken, 5}}, 4, 2},
      {"of a reserved kind", {{0x40, 5}}, 4, 2},
  };
  for (const Row& row : rows) {
    LateAnswers late;
    for (const auto& [syndrome, psn] : row.answers) {
      late.pass(late.answer(syndrome, psn));
    }
    const RingJob& job = late.first;
    EXPECT_EQ(late.heard_of(row.lowest),
              late.said(build(job.answer_to(0, kTaken, late.psn(0, row.lowest), row.sequence))))
        << row.description;
    EXPECT_EQ(late.heard_of(row.lowest - 1),
              late.said(build(job.answer_to(0, kAck, late.psn(0, row.lowest - 1), row.sequence))))
        << row.description;
  }
}

TEST(Farewell, OnlyTheReceiversAcknowledgementsCount) {
  const std::vector<std::pair<const char*, std::function<void(LateAnswers&)>>> rows{
      {"by another port",
       [](LateAnswers& late) {
         late.fixture.reset(0); // else no frame of the receiver's comes by another port
         EXPECT_EQ(late.fixture.send(late.answer(kAck, 5), 2).size(), 1u) << "it passes";
       }},
      {"damaged",
       [](LateAnswers& late) {
         Built answer = late.answer(kAck, 5);
         answer.bytes[answer.bth + 15] ^= 1; // MSN
         late.pass(answer);
       }},
      {"to another queue pair",
       [](LateAnswers& late) {
         FrameSpec answer = late.first.answer_to(0, kAck, late.psn(0, 5), 15);
         answer.qp += 0x100;
         late.pass(build(answer));
       }},
  };
  for (const auto& [description, send] : rows) {
    LateAnswers late;
    send(late);
    EXPECT_EQ(late.heard_of(4),
              late.said(build(late.first.answer_to(0, kTaken, late.psn(0, 4), 2))))
        << description;
  }
}

/// The third run's ranks call queue pairs their own that the first run's called so.
TEST(Farewell, OfTwoRunsWithOneQueuePairTheLaterOneIsAcknowledged) {
  TwoRuns two;
  two.begin(two.second);
  RingJob third = two.second;
  third.restart(1);
  third.spec().first_own_qp = two.first.spec().first_own_qp;
  two.begin(third);
  expect_completes(two.random, two.fixture, third, random_exchange(two.random, third, 1, 700));
  RingJob fourth = third;
  fourth.restart(1);
  two.begin(fourth);
  const std::uint32_t psn = third.first_psn_of(0);
  const Built answer = build(third.answer_to(0, kAck, psn + 1, 2));
  EXPECT_EQ(two.fixture.send(answer, 1).size(), 1u);
  two.fixture.now = frame::Instant{two.fixture.now.ns + kMs};
  EXPECT_EQ(two.fixture.send(third.message(0, 1, Bytes(700, 1))[1], 0),
            LateAnswers::said(build(third.answer_to(0, kTaken, psn + 2, 2))));
}

/// What was kept for its run before says nothing of the run that is over now.
TEST(Farewell, WhatWasKeptIsForgottenWhenTheConnectionLivesAgain) {
  TwoRuns two;
  two.begin(two.second);
  RingJob silent = two.second; // its hellos do not tell their queue pairs
  silent.restart(1);
  silent.spec().first_qp = two.first.spec().first_qp;
  silent.spec().first_own_qp = 0;
  two.begin(silent);
  RingJob last = silent;
  last.restart(1);
  two.begin(last);
  two.fixture.now = frame::Instant{two.fixture.now.ns + kMs};
  EXPECT_TRUE(two.fixture.send(silent.message(0, 1, Bytes(700, 1))[0], 0).empty());
  EXPECT_EQ(two.fixture.dropped(DropReason::wrong_session), 1u);
}

TEST(Farewell, TheRanksOfTheRunBeforeTheLastAreToldToo) {
  TwoRuns two;
  two.begin(two.second);
  RingJob third = two.second;
  third.restart(1);
  third.spec().first_own_qp += 0x10;
  two.begin(third);
  EXPECT_EQ(two.send_next(1), Frames{two.told(1)});
}

TEST(Farewell, TheOneWhoseRunEndedFirstMakesRoom) {
  Farewells farewells(2, conn::HashKey{}); // four runs each: two buckets of eight
  for (std::uint32_t qp = 0; qp < 100; ++qp) {
    farewells.put({.connection = {.pair = 1, .qp = qp}, .since_ns = 1 + qp});
    ASSERT_NE(farewells.find({.pair = 1, .qp = qp}), nullptr);
  }
  for (std::uint32_t qp = 0; qp < 100; ++qp) {
    EXPECT_EQ(farewells.find({.pair = 1, .qp = qp}) != nullptr, qp >= 100 - 16) << qp;
  }
}

TEST(Farewell, IsForThePacketsOfItsSenderAlone) {
  const std::vector<std::pair<const char*, std::function<Frames(TwoRuns&)>>> rows{
      {"by another port", [](TwoRuns& two) { return two.fixture.send(two.next(0), 1); }},
      {"damaged",
       [](TwoRuns& two) {
         Built middle = two.first.message(0, 2, Bytes(700, 1))[1];
         middle.bytes[middle.payload] ^= 1;
         return two.fixture.send(middle, 0);
       }},
      {"behind all that it may send",
       [](TwoRuns& two) {
         RingJob far = two.first;
         far.spec().first_psn += 1000;
         far.restart(0);
         far.spec() = two.first.spec();
         return two.fixture.send(far.message(0, 2, Bytes(700, 1))[0], 0);
       }},
      {"of another queue pair",
       [](TwoRuns& two) {
         FrameSpec stranger = two.first.frame_of(0);
         stranger.qp = 0x777;
         stranger.opcode = 0x07; // a MIDDLE of RDMA WRITE
         stranger.payload = Bytes(256, 1);
         return two.fixture.send(build(stranger), 0);
       }},
  };
  for (const auto& [description, send] : rows) {
    TwoRuns two;
    two.begin(two.second);
    two.fixture.now = frame::Instant{two.fixture.now.ns + kMs};
    EXPECT_TRUE(send(two).empty()) << description;
    EXPECT_EQ(two.send_next(0), Frames{two.told(0)}) << description;
  }
}

/// Its process may be another one by now (docs/protocol.md §9, "What the switch may say").
TEST(Farewell, NobodyIsToldWhoseQueuePairAnotherCallsItsOwn) {
  TwoRuns two;
  two.second.spec().first_own_qp = two.first.spec().first_own_qp;
  EXPECT_TRUE(two.begin(two.second).empty());
  EXPECT_TRUE(two.send_next(0).empty());

  TwoRuns later;
  later.begin(later.second);
  RingJob third = later.second;
  third.restart(1);
  third.spec().first_own_qp = later.first.spec().first_own_qp;
  later.fixture.send(third.hello(0), 0); // it waits
  EXPECT_TRUE(later.send_next(0).empty());
  EXPECT_EQ(later.send_next(1), Frames{later.told(1)});
}

/// Its hello does not tell its queue pair, so nothing else shows that it is another one.
TEST(Farewell, NobodyIsToldOnWhoseConnectionAHelloWaits) {
  TwoRuns two;
  RingJob silent = two.first;
  silent.restart(1);
  silent.spec().first_qp = two.first.spec().first_qp;
  silent.spec().first_own_qp = 0;
  EXPECT_TRUE(two.begin(silent).empty());
  EXPECT_TRUE(two.send_next(0).empty());

  TwoRuns later;
  later.begin(later.second);
  RingJob third = silent;
  third.restart(1);
  third.spec().first_qp = later.first.spec().first_qp;
  third.spec().first_psn += 0x1000; // else the old run's packets show that its sender has gone on
  later.fixture.send(third.hello(0), 0); // it waits
  EXPECT_TRUE(later.send_next(0).empty());
  EXPECT_EQ(later.send_next(1), Frames{later.told(1)});
}

TEST(Farewell, ARanksRunMayBeGivenUpByAReset) {
  TwoRuns two;
  EXPECT_TRUE(two.fixture.reset(0).empty()) << "nobody is told unasked";
  EXPECT_EQ(two.send_next(0), Frames{two.told(0, kGivenUp)});
  EXPECT_EQ(two.fixture.ring().told, 1u);
  EXPECT_TRUE(two.fixture.reset(0).empty()) << "no run is under way";
  EXPECT_TRUE(two.begin(two.second).empty());
  EXPECT_EQ(two.send_next(0), Frames{two.told(0, kGivenUp)}) << "the second run did not end it";
  expect_completes(two.random, two.fixture, two.second,
                   random_exchange(two.random, two.second, 1, 700));
}

TEST(Farewell, ARanksRunMayBeGivenUpByAWithdrawal) {
  TwoRuns two;
  EXPECT_TRUE(two.fixture.withdraw(0).empty()) << "nobody is told unasked";
  EXPECT_EQ(two.send_next(0), Frames{two.told(0, kGivenUp)});
  EXPECT_EQ(two.fixture.send(two.first.message(0, 2, Bytes(700, 1))[1], 0), Frames{}) << "once";
  RingJob other({.ring = 2, .world = 2, .network_id = 1}); // takes the index
  ASSERT_EQ(two.fixture.inside().add_ring(other.ring()), 0);
  EXPECT_EQ(two.send_next(1), Frames{two.told(1, kGivenUp)});
  EXPECT_EQ(two.fixture.ring().told, 0u) << "of the other ring nobody was told";
}

/// Its owner hears it by the control service, and tells the ranks.
TEST(Farewell, NobodyIsToldOfTheWithdrawalOfARingForOneRun) {
  TwoRuns two;
  two.fixture.withdraw(0);
  ring::RingSpec made = two.first.ring();
  made.nonce = two.second.spec().nonce;
  ASSERT_EQ(two.fixture.inside().add_ring(made), 0);
  EXPECT_TRUE(two.begin(two.second).empty());
  two.fixture.withdraw(0);
  two.fixture.now = frame::Instant{two.fixture.now.ns + kMs};
  const Built late = two.second.message(0, 1, Bytes(700, 1))[0];
  EXPECT_TRUE(two.fixture.send(late, 0).empty());
  EXPECT_EQ(two.send_next(0), Frames{two.told(0, kGivenUp)}) << "that was before";
}

TEST(Farewell, OfARingThatIsMadeAnewTheFormerRunsRanksAreTold) {
  TwoRuns two;
  two.fixture.withdraw(0);
  ASSERT_EQ(two.fixture.inside().add_ring(two.first.ring()), 0);
  EXPECT_EQ(two.send_next(2), Frames{two.told(2, kGivenUp)});
  EXPECT_EQ(two.fixture.ring().told, 1u);
  EXPECT_TRUE(two.begin(two.second).empty());
  EXPECT_EQ(two.send_next(1), Frames{two.told(1, kGivenUp)});
}

TEST(Farewell, NobodyIsToldWhoHasNotToldItsQueuePair) {
  RingJob silent({.world = 3});
  SwitchFixture fixture{{&silent}};
  fixture.start(silent);
  const Built old = silent.message(0, 1, Bytes(700, 1))[0];
  silent.restart(2);
  fixture.start(silent);
  fixture.now = frame::Instant{fixture.now.ns + kMs};
  EXPECT_TRUE(fixture.send(old, 0).empty());
}

} // namespace
} // namespace weir::stage::farewell_test
