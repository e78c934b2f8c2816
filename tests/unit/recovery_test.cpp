// SPDX-License-Identifier: BSD-3-Clause

/// The rules of docs/protocol.md §9 and §10 on the whole switch: losses between hosts and switch,
/// and senders that wait.

#include "switch_fixture.hpp"

#include <utility>

namespace weir::stage::recovery_test {
namespace {

constexpr std::uint8_t kAck = 0x1f; // no limit of credits
constexpr std::uint8_t kNak = 0x60; // PSN sequence error
constexpr std::uint8_t kRnr = 0x21; // timer code 1
constexpr std::uint64_t kUs = 1000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kFirst = 1 * kMs; // T before a round trip is measured

using Frames = std::vector<Sent>;

JobSpec telling(JobSpec spec = {}) {
  spec.first_own_qp = 0x500;
  return spec;
}

/// Two hosts that tell their queue pairs. Each is a sender, and the other's receiver.
struct Ring {
  explicit Ring(const JobSpec& spec = telling()) : job(spec) { fixture.start(job); }

  /// What the switch says to the rank in its receiver's name, before that has said anything.
  Sent from_hello(std::uint16_t rank, std::uint8_t syndrome, std::uint32_t psn) const {
    FrameSpec frame = job.frame_of(rank);
    std::swap(frame.source, frame.destination);
    std::swap(frame.source_mac, frame.destination_mac);
    frame.opcode = 0x11;
    frame.qp = job.own_qp_of(rank);
    frame.psn = psn & 0xffffff;
    frame.aeth = std::uint32_t{syndrome} << 24;
    return {build(frame).bytes, l2::PortSet{1} << job.port_of(rank), Departure::consumed};
  }

  /// The same in the style of the receiver's newest answer.
  Sent said(std::uint16_t rank, std::uint8_t syndrome, std::uint32_t psn,
            std::uint32_t message_sequence) const {
    return {build(job.answer_to(rank, syndrome, psn, message_sequence)).bytes,
            l2::PortSet{1} << job.port_of(rank), Departure::consumed};
  }

  /// The receiver's own answer, sent on.
  Sent passed(std::uint16_t rank, std::uint8_t syndrome, std::uint32_t psn,
              std::uint32_t message_sequence) const {
    Sent sent = said(rank, syndrome, psn, message_sequence);
    sent.departure = Departure::forwarded;
    return sent;
  }

  /// The rank's receiver answers it.
  Frames answer(std::uint16_t rank, std::uint8_t syndrome, std::uint32_t psn,
                std::uint32_t message_sequence) {
    return fixture.send(build(job.answer_to(rank, syndrome, psn, message_sequence)),
                        job.port_of(job.successor_of(rank)));
  }

  /// PSN of the n-th packet behind the hello.
  std::uint32_t psn(std::uint16_t rank, std::uint32_t n) const {
    return (job.first_psn_of(rank) + n) & 0xffffff;
  }

  /// All receivers have so many packets, the hello included.
  void acknowledge_all(std::uint32_t packets) {
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      EXPECT_EQ(answer(rank, kAck, psn(rank, packets - 1), packets).size(), 1u);
    }
  }

  Frames send(std::uint16_t rank, const Built& frame) {
    return fixture.send(frame, job.port_of(rank));
  }

  /// Three packets, unless told otherwise.
  Exchange message(std::uint32_t id, std::size_t bytes = 700) {
    return random_exchange(random, job, id, bytes);
  }

  /// The message; its results have left.
  Exchange complete(std::uint32_t id) {
    Exchange made = message(id);
    expect_completes(random, fixture, job, made);
    return made;
  }

  Sent result(std::uint16_t rank, const Exchange& made, std::size_t k) const {
    return result_sent(job, rank, made.packets[rank][k], made.reduced[k]);
  }

  Frames wait(std::uint64_t ns) { return fixture.wait(ns); }

  const recovery::FlowCounters& counters(std::uint16_t rank) {
    return fixture.inside().worker().incarnations().flow_of({0, rank}).counters;
  }

  std::mt19937 random{70};
  RingJob job;
  SwitchFixture fixture{{&job}};
};

// ---- R2: ask the one who lost. ----

TEST(Recovery, AGapIsAskedForOnceThenByRnrNaksMoreAndMoreRarely) {
  Ring ring;
  ring.acknowledge_all(1);
  const Exchange made = ring.message(1);
  EXPECT_TRUE(ring.send(0, made.packets[0][0]).empty());
  EXPECT_EQ(ring.send(0, made.packets[0][2]),
            (Frames{ring.said(0, kAck, ring.psn(0, 0), 1), ring.said(0, kNak, ring.psn(0, 1), 1)}));
  const Frames rnr{ring.said(0, kRnr, ring.psn(0, 1), 1)};
  EXPECT_EQ(ring.send(0, made.packets[0][2]), rnr) << "it went back in vain";
  for (const std::uint64_t pause : {15, 30, 60, 100, 100}) {
    ring.fixture.now = frame::Instant{ring.fixture.now.ns + pause * kMs - 1};
    EXPECT_TRUE(ring.send(0, made.packets[0][2]).empty()) << pause;
    ring.fixture.now = frame::Instant{ring.fixture.now.ns + 1};
    EXPECT_EQ(ring.send(0, made.packets[0][2]), rnr) << pause;
  }
  EXPECT_EQ(ring.counters(0).naks, 1u);
  EXPECT_EQ(ring.counters(0).rnr_naks, 6u);
}

TEST(Recovery, WhatComesBehindAGapAsksNoMore) {
  Ring ring;
  ring.acknowledge_all(1);
  const Exchange first = ring.message(1);
  const Exchange second = ring.message(2);
  EXPECT_TRUE(ring.send(0, first.packets[0][0]).empty());
  EXPECT_EQ(ring.send(0, first.packets[0][2]).size(), 2u);
  EXPECT_TRUE(ring.send(0, second.packets[0][0]).empty());
  EXPECT_TRUE(ring.send(0, second.packets[0][1]).empty());
  EXPECT_TRUE(ring.send(0, first.packets[0][1]).empty()) << "mended";
}

TEST(Recovery, ALostFirstIsAskedFor) {
  Ring ring;
  const Exchange made = ring.message(1);
  EXPECT_EQ(ring.send(0, made.packets[0][1]), (Frames{ring.from_hello(0, kAck, ring.psn(0, 0) - 1),
                                                      ring.from_hello(0, kNak, ring.psn(0, 0))}))
      << "not even the hello's result is acknowledged";
  EXPECT_EQ(ring.fixture.dropped(DropReason::unknown_message), 1u);
}

// ---- R3: mend from the cache. ----

TEST(Recovery, AReceiversNakIsAnsweredFromTheCache) {
  Ring ring;
  ring.acknowledge_all(1);
  const Exchange made = ring.complete(1);
  EXPECT_EQ(ring.answer(0, kNak, ring.psn(0, 2), 1),
            (Frames{ring.said(0, kAck, ring.psn(0, 1), 1), ring.result(0, made, 1),
                    ring.result(0, made, 2)}))
      << "packet 0 is acknowledged, the rest goes out again";
  EXPECT_EQ(ring.fixture.dropped(DropReason::nak_mended), 1u);
  EXPECT_EQ(ring.counters(0).resent, 2u);
}

TEST(Recovery, AnOldNakBecomesTheNewestAck) {
  Ring ring;
  ring.complete(1);
  ring.acknowledge_all(4);
  EXPECT_EQ(ring.answer(0, kNak, ring.psn(0, 1), 1),
            (Frames{ring.said(0, kAck, ring.psn(0, 3), 4)}));
  EXPECT_EQ(ring.counters(0).resent, 0u);
}

TEST(Recovery, ANakForWhatHasNotLeftPasses) {
  Ring ring;
  ring.complete(1);
  EXPECT_EQ(ring.answer(0, kNak, ring.psn(0, 4), 2),
            (Frames{ring.passed(0, kNak, ring.psn(0, 4), 2)}));
  EXPECT_EQ(ring.fixture.accounting().frames.all_dropped(), 0u);
}

/// Soft-RoCE answers each packet behind one that it had no buffer for by a NAK. To mend that would
/// never end (docs/transports.md).
TEST(Recovery, ANakAfterTheReceiversRnrNakIsNotMended) {
  Ring ring;
  ring.acknowledge_all(1);
  const Exchange made = ring.complete(1);
  EXPECT_EQ(ring.answer(0, kRnr, ring.psn(0, 1), 1),
            (Frames{ring.passed(0, kRnr, ring.psn(0, 1), 1)}));
  EXPECT_TRUE(ring.answer(0, kNak, ring.psn(0, 1), 1).empty());
  EXPECT_EQ(ring.fixture.dropped(DropReason::nak_mended), 1u);
  EXPECT_EQ(ring.send(0, made.packets[0][0]),
            (Frames{ring.result(0, made, 0), ring.result(0, made, 1), ring.result(0, made, 2)}))
      << "its sender has come again";
}

TEST(Recovery, ADamagedAnswerIsNotBelieved) {
  Ring ring;
  ring.complete(1);
  Built nak = build(ring.job.answer_to(0, kNak, ring.psn(0, 1), 1));
  nak.bytes[nak.icrc] ^= 1;
  EXPECT_EQ(ring.fixture.send(nak, 1), (Frames{{nak.bytes, 1, Departure::forwarded}}));
  EXPECT_EQ(ring.counters(0).mended, 0u);
}

// ---- R4: swallow. ----

TEST(Recovery, APassOfAcknowledgedRepeatsGetsOneAck) {
  Ring ring;
  const Exchange made = ring.complete(1);
  ring.acknowledge_all(4);
  const Frames ack{ring.said(0, kAck, ring.psn(0, 3), 4)};
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(ring.send(0, made.packets[0][0]), ack) << pass;
    EXPECT_TRUE(ring.send(0, made.packets[0][1]).empty());
    EXPECT_TRUE(ring.send(0, made.packets[0][2]).empty());
  }
  EXPECT_EQ(ring.fixture.dropped(DropReason::repeat_swallowed), 9u);
}

TEST(Recovery, APassOfUnacknowledgedRepeatsGetsOneResend) {
  Ring ring;
  ring.acknowledge_all(1);
  const Exchange made = ring.complete(1);
  const Frames all{ring.result(1, made, 0), ring.result(1, made, 1), ring.result(1, made, 2)};
  EXPECT_EQ(ring.send(1, made.packets[1][1]), all) << "from the first unacknowledged";
  EXPECT_TRUE(ring.send(1, made.packets[1][2]).empty());
  EXPECT_TRUE(ring.send(1, made.packets[1][1]).empty()) << "too soon";
  ring.fixture.now = frame::Instant{ring.fixture.now.ns + kFirst};
  EXPECT_EQ(ring.send(1, made.packets[1][1]), all) << "another pass";
}

/// With in-place buffers, a result may have overwritten the rest of the header.
TEST(Recovery, OfARepeatsHeaderOnlyTheSessionCounts) {
  Ring ring;
  const Exchange made = ring.complete(1);
  ring.acknowledge_all(4);
  Built repeat = made.packets[0][0];
  test::put32(repeat.bytes, repeat.payload + test::kInaMessageAt, 77);
  seal(repeat);
  EXPECT_EQ(ring.send(0, repeat).size(), 1u);
  test::put32(repeat.bytes, repeat.payload + test::kInaSessionAt, 77);
  seal(repeat);
  EXPECT_TRUE(ring.send(0, repeat).empty());
  EXPECT_EQ(ring.fixture.dropped(DropReason::wrong_session), 1u);
}

// ---- Damage that no ICRC shows. ----

constexpr std::size_t kInDestinationMac = 2;

TEST(Recovery, ARepeatSaysAnewWhereItsSenderIs) {
  Ring ring;
  const Exchange made = ring.complete(1);
  ring.acknowledge_all(3);
  Built ack = build(ring.job.answer_to(0, kAck, ring.psn(0, 3), 4));
  ack.bytes[kInDestinationMac] ^= 0x10;
  const std::uint16_t port = ring.job.port_of(ring.job.successor_of(0));
  EXPECT_EQ(ring.fixture.send(ack, port),
            (Frames{{ack.bytes, l2::PortSet{1} << ring.job.port_of(0), Departure::forwarded}}))
      << "a valid ICRC: it is taken, and goes where nobody is";
  EXPECT_EQ(ring.send(0, made.packets[0][2]), (Frames{ring.said(0, kAck, ring.psn(0, 3), 4)}));
}

TEST(Recovery, ARepeatSaysAnewWhereItsReceiverIs) {
  RingJob job(telling());
  SwitchFixture fixture({&job});
  fixture.announce(job);
  Built hello = job.hello(0);
  hello.bytes[kInDestinationMac] ^= 0x10;
  EXPECT_TRUE(fixture.send(hello, job.port_of(0)).empty());
  const Frames results = fixture.send(job.hello(1), job.port_of(1));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], result_sent(job, 0, hello, {})) << "it goes where nobody is";
  EXPECT_EQ(fixture.send(job.hello(0), job.port_of(0)),
            (Frames{asking_result_sent(job, 0, job.hello(0), {})}));
}

/// A late copy, or a stranger's frame that another switch has passed on.
TEST(Recovery, WhatIsFarFromTheWindowSaysNothingAnew) {
  Ring ring;
  const Exchange made = ring.complete(1);
  ring.acknowledge_all(4);
  Built far = made.packets[0][0];
  far.bytes[kInDestinationMac] ^= 0x10;
  constexpr std::size_t in_psn = 9; // of the BTH: its highest byte
  far.bytes[far.bth + in_psn] -= 0x40;
  seal(far);
  EXPECT_EQ(ring.send(0, far), (Frames{ring.said(0, kAck, ring.psn(0, 3), 4)}));
}

// ---- R5: timers. ----

TEST(Recovery, WhatNobodyAcknowledgesIsSentAgainFiveTimes) {
  Ring ring;
  const Exchange made = ring.complete(1);
  ring.acknowledge_all(1);
  unsigned resent = 0;
  for (std::uint64_t waited = 0; waited < 1000 * kMs; waited += 100 * kMs) {
    const Frames sent = ring.wait(100 * kMs);
    resent += static_cast<unsigned>(std::count(sent.begin(), sent.end(), ring.result(0, made, 0)));
  }
  EXPECT_EQ(resent, 5u);
  EXPECT_EQ(ring.counters(0).resent, 15u);
  EXPECT_EQ(ring.counters(1).resent, 15u);
}

TEST(Recovery, ALateRankIsAsked) {
  Ring ring;
  ring.acknowledge_all(1);
  ring.wait(10 * kMs);
  const Exchange made = ring.message(1);
  EXPECT_TRUE(ring.send(0, made.packets[0][0]).empty());
  EXPECT_TRUE(ring.wait(kFirst - 1).empty());
  const Frames asked = ring.wait(200 * kUs);
  ASSERT_GE(asked.size(), 2u);
  EXPECT_EQ(asked[0], ring.said(1, kAck, ring.psn(1, 0), 1));
  EXPECT_EQ(asked[1], ring.said(1, kNak, ring.psn(1, 1), 1));
  EXPECT_EQ(ring.counters(1).naks, 1u);
  EXPECT_EQ(ring.counters(0).naks, 0u);
}

/// What came shows that something is missing, so the switch does not wait as for a rank that is
/// slow.
TEST(Recovery, ALateRankWhoseFirstIsLostIsAskedAgainAfterARoundTrip) {
  Ring ring;
  ring.acknowledge_all(1);
  ring.wait(10 * kMs);
  const Exchange made = ring.message(1);
  EXPECT_TRUE(ring.send(0, made.packets[0][0]).empty());
  EXPECT_EQ(ring.wait(kFirst).size(), 2u) << "ACK and NAK";
  EXPECT_TRUE(ring.send(1, made.packets[1][2]).empty());
  EXPECT_TRUE(ring.wait(kFirst - 1).empty());
  EXPECT_EQ(ring.wait(1), (Frames{ring.said(1, kRnr, ring.psn(1, 1), 1)}));
}

TEST(Recovery, ATimerThatAMeasuredRoundTripHasMadeShorterRunsOutThen) {
  Ring ring;
  ring.complete(1);
  EXPECT_EQ(ring.wait(kFirst).size(), 8u) << "hello and message, twice: T is doubled";
  ring.acknowledge_all(4);
  ring.complete(2);
  const Exchange last = ring.complete(3);
  ring.wait(100 * kUs);
  ring.answer(0, kAck, ring.psn(0, 6), 3);
  EXPECT_TRUE(ring.wait(300 * kUs - 1).empty());
  EXPECT_EQ(ring.wait(1),
            (Frames{ring.result(0, last, 0), ring.result(0, last, 1), ring.result(0, last, 2)}));
}

TEST(Recovery, WhatAnRnrNakHasHeldUpIsDueWhenTheSenderBringsWhatWasLost) {
  constexpr std::uint8_t rnr_for_10_ms = 0x34;
  Ring ring;
  ring.acknowledge_all(1);
  const Exchange first = ring.complete(1);
  const Exchange second = ring.message(2);
  EXPECT_EQ(ring.send(0, second.packets[0][2]).size(), 2u) << "ACK and NAK";
  ring.answer(0, rnr_for_10_ms, ring.psn(0, 1), 1);
  const auto has_left_again = [&](const Frames& sent) {
    return std::ranges::count(sent, ring.result(0, first, 0)) == 1;
  };
  EXPECT_FALSE(has_left_again(ring.wait(2 * kFirst)));
  EXPECT_TRUE(ring.send(0, second.packets[0][0]).empty());
  EXPECT_TRUE(has_left_again(ring.wait(0)));
}

/// It was silent for its sender, because a was older than all that it knows of.
TEST(Recovery, ALateRankIsAskedAsSoonAsAnAcknowledgementTellsWhatItsReceiverHas) {
  Ring ring(telling({.window = 1}));
  ring.complete(1);
  ring.wait(10 * kUs);
  ring.acknowledge_all(4);
  for (std::uint32_t id = 2; id <= 4; ++id) {
    ring.complete(id);
  }
  const Exchange made = ring.message(5);
  ring.send(0, made.packets[0][0]);
  ring.wait(10 * kMs);
  EXPECT_EQ(ring.counters(1).naks, 0u) << "T is over, but who may be told what?";
  ring.answer(1, kAck, ring.psn(1, 12), 5);
  ring.wait(2 * kMs);
  EXPECT_EQ(ring.counters(1).naks, 1u) << "T is 11 ms by now";
}

TEST(Recovery, BeyondPatienceTheSwitchSpeaksForNobody) {
  Ring ring(telling({.patience_ms = 1000}));
  const Exchange made = ring.complete(1);
  ring.acknowledge_all(4);
  ring.fixture.now = frame::Instant{ring.fixture.now.ns + 1001 * kMs};
  EXPECT_EQ(ring.answer(0, kNak, ring.psn(0, 3), 2),
            (Frames{ring.passed(0, kNak, ring.psn(0, 3), 2)}));
  EXPECT_EQ(ring.send(0, made.packets[0][0]), (Frames{ring.result(0, made, 2)}))
      << "the receiver has to say it itself";
}

TEST(Recovery, WhoClaimsAnothersQueuePairSilencesTheSwitch) {
  RingJob one(telling({.ring = 1}));
  RingJob two(telling({.ring = 2, .session = kSession + 1, .first_qp = 0x200}));
  SwitchFixture fixture({&one, &two});
  fixture.start(one);
  const auto nak = [&](std::uint16_t rank) {
    return build(one.answer_to(rank, kNak, one.first_psn_of(rank)));
  };
  EXPECT_EQ(fixture.send(nak(0), 1).size(), 1u);
  EXPECT_EQ(fixture.dropped(DropReason::nak_mended), 1u);
  fixture.send(two.hello(0), 0); // it waits, and its claim counts
  EXPECT_EQ(fixture.send(nak(0), 1), (Frames{{nak(0).bytes, 1, Departure::forwarded}}));
  EXPECT_EQ(fixture.send(nak(1), 0).size(), 1u);
  EXPECT_EQ(fixture.dropped(DropReason::nak_mended), 2u) << "the other host's is its own";
}

// ---- Keep-alive. ----

constexpr std::uint64_t kQuarter = 1024ull << 14; // ns: of the ACK timeout 4.096 us x 2^14

JobSpec patient(ring::KeepAlive keep_alive) {
  return telling({.ack_timeout = 14, .keep_alive = keep_alive});
}

/// What rank 0 is told in so many quarters of its timeout while rank 1 is late.
Frames told_while_waiting(Ring& ring, unsigned quarters) {
  const Exchange made = ring.message(1, 16);
  EXPECT_TRUE(ring.send(0, made.packets[0][0]).empty());
  Frames told = ring.wait(quarters * kQuarter);
  std::erase_if(told, [](const Sent& sent) { return sent.ports != 1; });
  return told;
}

TEST(KeepAlive, AWaitingSenderIsToldEachQuarterWhatIsAcknowledged) {
  Ring ring(patient(ring::KeepAlive::ack));
  ring.acknowledge_all(1);
  EXPECT_EQ(told_while_waiting(ring, 5), Frames(5, ring.said(0, kAck, ring.psn(0, 0), 1)));
  EXPECT_EQ(ring.counters(0).kept_alive, 5u);
}

TEST(KeepAlive, OnlyWhenAllIsAcknowledged) {
  Ring ring(patient(ring::KeepAlive::ack));
  told_while_waiting(ring, 5);
  EXPECT_EQ(ring.counters(0).kept_alive, 0u);
}

TEST(KeepAlive, CanBeOff) {
  Ring ring(patient(ring::KeepAlive::off));
  ring.acknowledge_all(1);
  EXPECT_TRUE(told_while_waiting(ring, 5).empty());
}

TEST(KeepAlive, CanBeTurnedOnAndOffWhileASenderWaits) {
  Ring ring(patient(ring::KeepAlive::off));
  ring.acknowledge_all(1);
  EXPECT_TRUE(told_while_waiting(ring, 5).empty());
  ring::RingSpec spec = ring.job.ring();
  spec.keep_alive = ring::KeepAlive::ack;
  ring.fixture.inside().change_rings(std::vector{spec}, ring.fixture.now);
  EXPECT_FALSE(ring.wait(2 * kQuarter).empty());
  spec.keep_alive = ring::KeepAlive::off;
  ring.fixture.inside().change_rings(std::vector{spec}, ring.fixture.now);
  Frames told = ring.wait(5 * kQuarter);
  std::erase_if(told, [](const Sent& sent) { return sent.ports != 1; });
  EXPECT_TRUE(told.empty());
}

TEST(KeepAlive, CanBeRnrNaksForAnEighthOfTheTimeWaited) {
  Ring ring(patient(ring::KeepAlive::rnr));
  ring.acknowledge_all(1);
  // 16.8 ms / 8 = 2.1 ms, then 4.2 ms: codes 15 (1.92 ms) and 17 (3.84 ms) of IBTA table 45.
  EXPECT_EQ(told_while_waiting(ring, 2), (Frames{ring.said(0, 0x20 | 15, ring.psn(0, 1), 1),
                                                 ring.said(0, 0x20 | 17, ring.psn(0, 1), 1)}));
}

TEST(KeepAlive, AWaitingHelloIsKeptAliveToo) {
  Ring ring(patient(ring::KeepAlive::ack));
  ring.acknowledge_all(1);
  ring.job.restart(2);
  EXPECT_TRUE(ring.send(0, ring.job.hello(0)).empty());
  EXPECT_EQ(ring.wait(3 * kQuarter), Frames(3, ring.from_hello(0, kAck, ring.psn(0, 0) - 1)));
  EXPECT_EQ(ring.counters(0).hellos_kept_alive, 3u);
}

TEST(KeepAlive, AWaitingHelloIsKeptAliveAQuarterAfterItCame) {
  Ring ring(patient(ring::KeepAlive::ack));
  ring.acknowledge_all(1);
  ring.job.restart(2);
  ring.wait(kMs - 1); // late in a millisecond
  ring.send(0, ring.job.hello(0));
  EXPECT_TRUE(ring.wait(kQuarter - 1).empty());
  EXPECT_EQ(ring.wait(1), Frames(1, ring.from_hello(0, kAck, ring.psn(0, 0) - 1)));
}

} // namespace
} // namespace weir::stage::recovery_test
