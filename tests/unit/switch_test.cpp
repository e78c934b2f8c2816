// SPDX-License-Identifier: BSD-3-Clause

#include "support/sanitized.hpp"
#include "switch_fixture.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace weir::stage::switch_test {
namespace {

using test::kNetworks;
using test::Network;
using test::Tag;
using test::Verb;

/// From an address of no member.
Built stranger_to_member(RingJob& job, std::uint8_t opcode) {
  FrameSpec spec = job.frame_of(0);
  spec.source = test::ip("192.0.2.1");
  spec.opcode = opcode;
  return build(spec);
}

// ---- Results: every encapsulation, opcode, world, type and operation. ----

TEST(Switch, AnswersHellosWithItsSession) {
  for (const Network network : kNetworks) {
    for (const Verb verb : {Verb::send, Verb::send_immediate, Verb::write, Verb::write_immediate}) {
      RingJob job({.world = 3, .network = network, .verb = verb});
      SwitchFixture fixture({&job});
      fixture.announce(job);
      EXPECT_TRUE(fixture.send(job.hello(2), 2).empty());
      EXPECT_TRUE(fixture.send(job.hello(0), 0).empty());
      const auto sent = fixture.send(job.hello(1), 1);
      ASSERT_EQ(sent.size(), 3u);
      for (std::uint16_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(sent[rank], result_sent(job, rank, job.hello(rank), {}));
        const std::size_t ina = job.hello(rank).payload;
        EXPECT_EQ(test::get32(sent[rank].bytes, ina + test::kInaSessionAt), kSession);
        EXPECT_EQ(test::get32(sent[rank].bytes, ina + test::kInaMessageAt), test::kNonce);
        EXPECT_EQ(sent[rank].bytes[ina + test::kInaFlagsAt], 1);
      }
      EXPECT_EQ(fixture.ring().hellos, 1u);
    }
  }
}

TEST(Switch, ResultsAreTheHeadersOfEachAndTheSumOfAll) {
  std::mt19937 random(41);
  const std::vector<std::vector<Tag>> tags{{}, {{0x8100, 7}}, {{0x88a8, 3}, {0x8100, 7}}};
  for (const Network network : kNetworks) {
    for (const auto& stack : tags) {
      for (const Verb verb :
           {Verb::send, Verb::send_immediate, Verb::write, Verb::write_immediate}) {
        for (const std::uint16_t world : {2, 3, 4}) {
          RingJob job({.world = world, .network = network, .tags = stack, .verb = verb});
          if (network == Network::ipv4) {
            job.spec().ip_options = Bytes(world == 4 ? 40 : 0, 0x01);
          }
          SCOPED_TRACE(std::string(test::name_of(network)) + ", " + std::to_string(stack.size()) +
                       " tags, verb " + std::to_string(static_cast<int>(verb)) + ", world " +
                       std::to_string(world));
          SwitchFixture fixture({&job});
          fixture.start(job);
          std::uint32_t id = 0;
          for (const std::size_t bytes : {0, 4, 216, 220, 472, 700, 984}) {
            expect_completes(random, fixture, job, random_exchange(random, job, ++id, bytes));
          }
          EXPECT_EQ(fixture.accounting().frames.all_dropped(), 0u);
        }
      }
    }
  }
}

TEST(Switch, ASendersUdpChecksumDoesNotOutliveItsData) {
  std::mt19937 random(47);
  for (const Network network : {Network::ipv4, Network::ipv6}) {
    RingJob job({.world = 2, .network = network, .udp_checksum = 0x1234});
    SwitchFixture fixture({&job});
    fixture.start(job);
    const Exchange message = random_exchange(random, job, 1, 700); // FIRST, MIDDLE, LAST
    expect_completes(random, fixture, job, message);
    const Built& packet = message.packets[0][1];
    const auto repeated = fixture.send(packet, 0); // answered from the cache
    ASSERT_EQ(repeated.size(), 1u);
    EXPECT_EQ(test::get16(repeated[0].bytes, packet.udp + 6), 0u); // RFC 768: none
    const Built plain = between(job, 0, 1, 0x0a, 16);
    EXPECT_EQ(test::get16(plain.bytes, plain.udp + 6), 0x1234u);
    const Sent forwarded{plain.bytes, port_behind(job, 0), Departure::forwarded};
    EXPECT_EQ(fixture.send(plain, 0), std::vector<Sent>{forwarded}) << "what is forwarded keeps it";
  }
}

/// The switch gets the frames of a job, each with so many bytes behind its ICRC, and must do what
/// another one does that gets the same frames without them.
void expect_cuts_trailers(std::mt19937& random, RingJob& job, std::size_t trailer_bytes) {
  SwitchFixture bare({&job});
  SwitchFixture fixture({&job});
  bare.announce(job);
  fixture.announce(job);
  std::size_t results = 0;
  const auto send = [&](const Built& frame, std::uint16_t rank) {
    Bytes with_trailer = frame.bytes;
    for (std::size_t i = 0; i < trailer_bytes; ++i) {
      with_trailer.push_back(static_cast<std::uint8_t>(random()));
    }
    const std::vector<Sent> expected = bare.send(frame, job.port_of(rank));
    ASSERT_EQ(fixture.send(with_trailer, job.port_of(rank)), expected);
    results += expected.size();
  };
  for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
    send(job.hello(rank), rank);
  }
  for (std::uint32_t id = 1; id <= 3; ++id) {
    const Exchange message = random_exchange(random, job, id, 700);
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      for (const Built& packet : message.packets[rank]) {
        send(packet, rank);
      }
    }
    send(message.packets[0][1], 0); // a repeat
  }
  EXPECT_GT(results, 3u * 3u * job.spec().world) << "else nothing was compared";
  EXPECT_EQ(fixture.accounting().frames.all_dropped(), bare.accounting().frames.all_dropped());
}

TEST(Switch, WhatLiesBehindAnIcrcIsNoPartOfAResult) {
  std::mt19937 random(44);
  const std::vector<std::vector<Tag>> tags{{}, {{0x8100, 7}}, {{0x88a8, 3}, {0x8100, 7}}};
  for (const Network network : kNetworks) {
    for (const auto& stack : tags) {
      for (const std::size_t trailer_bytes : {1, 2, 3, 4, 8, 60, 300}) {
        SCOPED_TRACE(std::string(test::name_of(network)) + ", " + std::to_string(stack.size()) +
                     " tags, trailer of " + std::to_string(trailer_bytes));
        RingJob job({.world = 3, .network = network, .tags = stack});
        ASSERT_NO_FATAL_FAILURE(expect_cuts_trailers(random, job, trailer_bytes));
      }
    }
  }
}

TEST(Switch, AForwardedFrameKeepsItsTrailer) {
  for (const Network network : kNetworks) {
    RingJob job({.world = 2, .network = network});
    SwitchFixture fixture({&job});
    fixture.start(job);
    for (const std::size_t trailer_bytes : {1, 4, 60}) {
      Built plain = between(job, 0, 1, 0x0a, 16);
      plain.bytes.resize(plain.bytes.size() + trailer_bytes, 0x5a);
      const Sent forwarded{plain.bytes, port_behind(job, 0), Departure::forwarded};
      EXPECT_EQ(fixture.send(plain, 0), std::vector<Sent>{forwarded});
    }
  }
}

TEST(Switch, TypesAndOperations) {
  std::mt19937 random(42);
  for (const DataType type : {DataType::i32, DataType::f32, DataType::u8}) {
    for (const Operation operation : {Operation::sum, Operation::min, Operation::max}) {
      for (const std::uint16_t mtu : {256, 512, 1024}) {
        RingJob job({.world = 3,
                     .mtu = mtu,
                     .max_message_bytes = 4096,
                     .type = type,
                     .operation = operation});
        SwitchFixture fixture({&job});
        fixture.start(job);
        for (std::uint32_t id = 1; id < 12; ++id) { // slots are reclaimed on the way
          const std::size_t bytes = random() % 1000 * element_size(type);
          expect_completes(random, fixture, job, random_exchange(random, job, id, bytes));
        }
      }
    }
  }
}

/// The last packet's payload may have any length; the pad after it stays the sender's.
TEST(Switch, OddPayloadsKeepTheirPad) {
  std::mt19937 random(43);
  for (const Network network : kNetworks) {
    for (const Verb verb : {Verb::send, Verb::write_immediate}) {
      RingJob job({.world = 3, .network = network, .verb = verb, .type = DataType::u8});
      SwitchFixture fixture({&job});
      fixture.start(job);
      std::uint32_t id = 0;
      for (const std::size_t bytes : {1, 2, 3, 5, 215, 216, 217, 218, 219, 471, 474, 983}) {
        Exchange made = random_exchange(random, job, ++id, bytes);
        for (auto& packets : made.packets) { // pads that are not zero, different for each rank
          Built& last = packets.back();
          for (std::size_t at = last.icrc - last.pad; at < last.icrc; ++at) {
            last.bytes[at] = static_cast<std::uint8_t>(random());
          }
          seal(last);
        }
        expect_completes(random, fixture, job, made);
      }
    }
  }
}

TEST(Switch, RingsOfManyMembers) {
  std::mt19937 random(44);
  for (const std::uint16_t world : {64, 67, 255, 256}) { // no two neighbours behind one of 4 ports
    RingJob job({.world = world,
                 .network = world == 256 ? Network::ipv6 : Network::ipv4,
                 .type = DataType::f32});
    SwitchFixture fixture({&job});
    fixture.start(job);
    for (std::uint32_t id = 1; id < 6; ++id) {
      expect_completes(random, fixture, job, random_exchange(random, job, id, 400));
    }
    EXPECT_EQ(fixture.ring().results, world * (1u + 5u * 2u));
    EXPECT_EQ(fixture.ring().reduced_bytes, world * 5u * 400u);
  }
}

/// An IPv4 address is also a GID: a ring may have members that speak RoCE v1 and v2.
TEST(Switch, EachRankKeepsItsOwnEncapsulation) {
  RingJob job({.world = 2});
  SwitchFixture fixture({&job});
  fixture.announce(job);
  const auto as_v1 = [&](const Built& frame) {
    FrameSpec spec = job.frame_of(1);
    spec.network = Network::v1;
    spec.opcode = frame.bytes[frame.bth];
    spec.psn = test::get32(frame.bytes, frame.bth + 8) & 0xffffff;
    const auto payload = frame.bytes.begin() + static_cast<std::ptrdiff_t>(frame.payload);
    spec.payload.assign(payload, payload + static_cast<std::ptrdiff_t>(frame.payload_bytes));
    return build(spec);
  };
  const Built v1_hello = as_v1(job.hello(1));
  EXPECT_TRUE(fixture.send(v1_hello, 1).empty());
  EXPECT_EQ(fixture.send(job.hello(0), 0), (std::vector<Sent>{result_sent(job, 0, job.hello(0), {}),
                                                              result_sent(job, 1, v1_hello, {})}));
  const Exchange made = exchange(job, 1, {Bytes(100, 1), Bytes(100, 2)});
  const Built v1_data = as_v1(made.packets[1][0]);
  EXPECT_TRUE(fixture.send(v1_data, 1).empty());
  EXPECT_EQ(fixture.send(made.packets[0][0], 0),
            (std::vector<Sent>{result_sent(job, 0, made.packets[0][0], Bytes(100, 3)),
                               result_sent(job, 1, v1_data, Bytes(100, 3))}));
}

// ---- Other collectives. ----

/// A message of every rank, its result the root's data.
Exchange broadcast(RingJob& job, std::uint32_t id, std::uint16_t root,
                   const std::vector<Bytes>& inputs) {
  Exchange made;
  for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
    test::InaSpec ina = job.ina_of(rank, id, static_cast<std::uint32_t>(inputs[rank].size()));
    ina.collective = 2;
    ina.root = root;
    made.packets.push_back(job.message(rank, ina, inputs[rank]));
  }
  for (const Built& packet : made.packets[root]) {
    made.reduced.push_back(data_of(packet));
  }
  return made;
}

/// Bytes unchanged: random bits include NaNs of every payload.
TEST(Switch, ABroadcastGivesEveryoneTheRootsBytes) {
  std::mt19937 random(55);
  RingJob job({.world = 3, .type = DataType::f16});
  SwitchFixture fixture({&job});
  fixture.start(job);
  for (std::uint32_t id = 1; id <= 9; ++id) {
    std::vector<Bytes> inputs;
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      inputs.push_back(random_data(random, DataType::u8, 700));
    }
    for (std::size_t at = 0; at + 2 <= 700; at += 100) { // signalling NaNs
      inputs[(id - 1) % 3][at + 1] = 0x7c;
      inputs[(id - 1) % 3][at] |= 1;
    }
    const Exchange made = broadcast(job, id, static_cast<std::uint16_t>((id - 1) % 3), inputs);
    expect_completes(random, fixture, job, made);
    EXPECT_EQ(fixture.send(made.packets[1][2], 1),
              (std::vector<Sent>{result_sent(job, 1, made.packets[1][2], made.reduced[2])}))
        << "a repeat gets the cached result";
  }
  EXPECT_EQ(fixture.accounting().frames.all_dropped(), 0u);
}

TEST(Switch, ABarrierEndsWhenEveryoneIsThere) {
  std::mt19937 random(56);
  RingJob job({.world = 4});
  SwitchFixture fixture({&job});
  fixture.start(job);
  for (std::uint32_t id = 1; id <= 9; ++id) {
    Exchange made;
    for (std::uint16_t rank = 0; rank < 4; ++rank) {
      test::InaSpec ina = job.ina_of(rank, id, 0);
      ina.collective = 3;
      made.packets.push_back(job.message(rank, ina, {}));
    }
    made.reduced.resize(1);
    expect_completes(random, fixture, job, made);
  }
  EXPECT_EQ(fixture.accounting().frames.all_dropped(), 0u);
}

// ---- Repeats and losses. ----

/// In-place all-reduce: the repeat's payload is not the gradient any more (protocol §4).
TEST(Switch, ARepeatOfACompletePacketGetsTheCachedResult) {
  std::mt19937 random(45);
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  const Exchange made = random_exchange(random, job, 1, 700);
  expect_completes(random, fixture, job, made);
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    const auto repeats = job.message(rank, 1, Bytes(700, 0x99));
    for (std::size_t k = 0; k < repeats.size(); ++k) {
      ASSERT_EQ(fixture.send(repeats[k], job.port_of(rank)),
                (std::vector<Sent>{result_sent(job, rank, made.packets[rank][k], made.reduced[k])}))
          << rank << " " << k;
    }
  }
  EXPECT_EQ(fixture.ring().cached_results, 9u);
  EXPECT_EQ(fixture.send(job.hello(1), 1),
            (std::vector<Sent>{result_sent(job, 1, job.hello(1), {})}));
}

/// The expected outcome of a step, computed without slots: which ranks have contributed to which
/// packet. Results leave in order; the last one before a gap asks for an acknowledgement (R1).
class Expectation {
 public:
  Expectation(const RingJob& job, const Exchange& exchange)
      : job_(job), exchange_(exchange), has_first_(job.spec().world), reached_(job.spec().world),
        contributed_(exchange.reduced.size()) {}

  std::vector<Sent> step(std::uint16_t rank, std::size_t k) {
    reached_[rank] = std::max(reached_[rank], k + 1);
    if (k > 0 && !has_first_[rank]) {
      return {}; // inside a message whose FIRST was lost
    }
    has_first_[rank] = true;
    if (k < left_) {
      return {result_sent(job_, rank, exchange_.packets[rank][k], exchange_.reduced[k])};
    }
    contributed_[k].insert(rank);
    std::vector<Sent> sent;
    for (; is_complete(left_); ++left_) {
      const bool asks = has_gap() && !is_complete(left_ + 1);
      for (std::uint16_t to = 0; to < job_.spec().world; ++to) {
        const auto& frame = exchange_.packets[to][left_];
        const auto& data = exchange_.reduced[left_];
        sent.push_back(asks ? asking_result_sent(job_, to, frame, data)
                            : result_sent(job_, to, frame, data));
      }
    }
    return sent;
  }

 private:
  bool is_complete(std::size_t k) const {
    return k < contributed_.size() && contributed_[k].size() == job_.spec().world;
  }

  /// Whether a rank has sent a packet and one before it is missing.
  bool has_gap() const {
    for (std::uint16_t rank = 0; rank < job_.spec().world; ++rank) {
      for (std::size_t k = 0; k < reached_[rank]; ++k) {
        if (!contributed_[k].contains(rank)) {
          return true;
        }
      }
    }
    return false;
  }

  const RingJob& job_;
  const Exchange& exchange_;
  std::vector<bool> has_first_;
  std::vector<std::size_t> reached_; // by rank: behind the last packet that came
  std::vector<std::set<std::uint16_t>> contributed_;
  std::size_t left_ = 0; // packets whose results have left
};

/// Every sequence of six packets of two ranks with two packets each: every order, loss and
/// repetition.
TEST(Switch, EveryOrderOfLossAndRepetition) {
  constexpr unsigned kPrime = 1237;
  RingJob job({.world = 2, .window = 1, .max_message_bytes = 512});
  const Exchange made = exchange(job, 1, {Bytes(300, 5), Bytes(300, 6)});
  constexpr unsigned steps = 6;
  constexpr unsigned sequences = 1u << (2 * steps);
  constexpr unsigned tried = test::rounds(sequences);
  for (unsigned round = 0; round < tried; ++round) {
    const unsigned sequence =
        round * kPrime % sequences; // a part of them has all beginnings and ends
    SwitchFixture fixture({&job});
    fixture.start(job);
    Expectation expectation(job, made);
    for (unsigned step = 0; step < steps; ++step) {
      const unsigned choice = sequence >> (2 * step) & 3;
      const auto rank = static_cast<std::uint16_t>(choice & 1);
      const std::size_t k = choice >> 1;
      ASSERT_EQ(fixture.send(made.packets[rank][k], rank), expectation.step(rank, k))
          << "sequence " << sequence << " step " << step;
    }
  }
}

TEST(Switch, RandomLossAndRepetitionInLargerRings) {
  std::mt19937 random(46);
  for (int round = 0; round < 300; ++round) {
    RingJob job({.world = static_cast<std::uint16_t>(2 + random() % 3)});
    SwitchFixture fixture({&job});
    fixture.start(job);
    const Exchange made = random_exchange(random, job, 1, 4 * (1 + random() % 240));
    Expectation expectation(job, made);
    for (int step = 0; step < 40; ++step) {
      const auto rank = static_cast<std::uint16_t>(random() % job.spec().world);
      const std::size_t k = random() % made.reduced.size();
      ASSERT_EQ(fixture.send(made.packets[rank][k], job.port_of(rank)), expectation.step(rank, k));
    }
  }
}

/// Version 1 forwarded it. With partial sums, that would pass for a total.
TEST(Switch, NoStaleRepeatIsForwarded) {
  std::mt19937 random(47);
  RingJob job({.world = 2, .window = 1}); // 2N = 2
  SwitchFixture fixture({&job});
  fixture.start(job);
  std::vector<Exchange> made;
  for (std::uint32_t id = 1; id <= 4; ++id) {
    made.push_back(random_exchange(random, job, id, 700));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    expect_completes(random, fixture, job, made[i]);
  }
  EXPECT_TRUE(fixture.send(made[0].packets[0][0], 0).empty()) << "left the history, a FIRST";
  EXPECT_TRUE(fixture.send(made[0].packets[0][1], 0).empty()) << "its middle, before the floor";
  EXPECT_TRUE(fixture.send(job.hello(0), 0).empty());
  EXPECT_EQ(fixture.dropped(DropReason::stale_repeat), 3u);
  EXPECT_TRUE(fixture.send(made[3].packets[1][0], 1).empty()) << "message 4 reclaims 2's slot";
  EXPECT_TRUE(fixture.send(made[1].packets[0][0], 0).empty()) << "in the history, its slot gone";
  EXPECT_EQ(fixture.dropped(DropReason::stale_repeat), 4u);
  EXPECT_EQ(fixture.accounting().frames.all_dropped(), 4u);
}

TEST(Switch, TheSequenceRunsOnThroughManyWindows) {
  std::mt19937 random(48);
  for (const std::uint32_t window : {1, 2, 3}) {
    RingJob job({.world = 3, .window = window});
    SwitchFixture fixture({&job});
    fixture.start(job);
    for (std::uint32_t id = 1; id < 40; ++id) { // the PSN wraps, lengths change
      expect_completes(random, fixture, job,
                       random_exchange(random, job, id, 4 * (random() % 246)));
    }
    EXPECT_EQ(fixture.accounting().frames.all_dropped(), 0u);
    EXPECT_EQ(fixture.accounting().held, 0u);
  }
}

// ---- More than one ring (protocol I5). ----

TEST(Switch, AStalledRingHoldsUpNobody) {
  std::mt19937 random(49);
  RingJob stalled({.ring = 1, .world = 3, .network_id = 1});
  RingJob running(
      {.ring = 2, .world = 4, .network = Network::ipv6, .session = kSession + 1, .network_id = 2});
  SwitchFixture fixture({&stalled, &running});
  fixture.start(stalled);
  fixture.start(running);
  std::vector<Exchange> waiting;
  for (std::uint32_t id = 1; id <= 2; ++id) {
    waiting.push_back(random_exchange(random, stalled, id, 700));
    for (std::uint16_t rank : {0, 1}) {
      for (const Built& packet : waiting.back().packets[rank]) {
        EXPECT_TRUE(fixture.send(packet, stalled.port_of(rank)).empty());
      }
    }
  }
  const std::uint64_t held = fixture.accounting().held;
  EXPECT_EQ(held, 12u);
  for (std::uint32_t id = 1; id < 30; ++id) {
    expect_completes(random, fixture, running, random_exchange(random, running, id, 700));
    EXPECT_EQ(fixture.accounting().held, held);
    for (std::uint16_t rank : {0, 1}) { // it goes on repeating itself
      EXPECT_TRUE(fixture.send(waiting[0].packets[rank][id % 3], stalled.port_of(rank)).empty());
    }
  }
  const RingSnapshot snapshot = snapshot_ring(fixture.inside().worker(), 0, {});
  EXPECT_EQ(snapshot.held, 12u);
  EXPECT_EQ(snapshot.filling, 6u);
  EXPECT_EQ(snapshot.incarnation, (conn::Incarnation{1, test::kNonce}));
  ASSERT_EQ(snapshot.children.size(), 3u);
  EXPECT_EQ(snapshot.children[0].newest_message, 2u);
  EXPECT_EQ(snapshot.children[2].newest_message, 0u);
  for (const Exchange& made : waiting) { // the slow rank's packets come
    for (std::size_t k = 0; k < made.reduced.size(); ++k) {
      const auto sent = fixture.send(made.packets[2][k], stalled.port_of(2));
      ASSERT_EQ(sent.size(), 3u);
      EXPECT_EQ(sent[0], result_sent(stalled, 0, made.packets[0][k], made.reduced[k]));
    }
  }
  EXPECT_EQ(fixture.accounting().held, 0u);
}

TEST(Switch, RingsOfTheSameHostsInterleave) {
  std::mt19937 random(50);
  RingJob one({.ring = 1, .world = 2, .first_qp = 0x100});
  RingJob two(
      {.ring = 2, .world = 2, .type = DataType::f32, .session = kSession + 1, .first_qp = 0x200});
  SwitchFixture fixture({&one, &two});
  fixture.start(one);
  fixture.start(two);
  for (std::uint32_t id = 1; id < 10; ++id) {
    const Exchange first = random_exchange(random, one, id, 700);
    const Exchange second = random_exchange(random, two, id, 700);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_TRUE(fixture.send(first.packets[0][k], 0).empty());
      EXPECT_TRUE(fixture.send(second.packets[1][k], 1).empty());
      EXPECT_EQ(fixture.send(first.packets[1][k], 1),
                (std::vector<Sent>{result_sent(one, 0, first.packets[0][k], first.reduced[k]),
                                   result_sent(one, 1, first.packets[1][k], first.reduced[k])}));
      EXPECT_EQ(fixture.send(second.packets[0][k], 0),
                (std::vector<Sent>{result_sent(two, 0, second.packets[0][k], second.reduced[k]),
                                   result_sent(two, 1, second.packets[1][k], second.reduced[k])}));
    }
  }
}

// ---- Incarnations and resets. ----

TEST(Switch, ANewRunReleasesWhatTheOldOneHeld) {
  std::mt19937 random(51);
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  expect_completes(random, fixture, job, random_exchange(random, job, 1, 700));
  const Exchange given_up = random_exchange(random, job, 2, 700);
  for (const Built& packet : given_up.packets[0]) {
    fixture.send(packet, 0);
  }
  EXPECT_EQ(fixture.accounting().held, 3u);
  job.restart(2);
  EXPECT_TRUE(fixture.send(job.hello(2), 2).empty()) << "no cached hello of the old run";
  EXPECT_TRUE(fixture.send(job.hello(0), 0).empty());
  EXPECT_EQ(fixture.accounting().held, 5u) << "the old run's packets and two hellos";
  EXPECT_EQ(fixture.send(job.hello(1), 1).size(), 3u);
  EXPECT_EQ(fixture.dropped(DropReason::incarnation_flush), 3u);
  EXPECT_EQ(fixture.accounting().held, 0u);
  expect_completes(random, fixture, job, random_exchange(random, job, 1, 700));
  EXPECT_EQ(fixture.dropped(DropReason::incarnation_flush), 3u);
}

TEST(Switch, AResetReleasesWhatTheRingHeld) {
  std::mt19937 random(52);
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  const Exchange given_up = random_exchange(random, job, 1, 700);
  for (const Built& packet : given_up.packets[0]) {
    fixture.send(packet, 0);
  }
  fixture.reset(0);
  EXPECT_EQ(fixture.dropped(DropReason::ring_reset), 3u);
  EXPECT_EQ(fixture.accounting().held, 0u);
  for (std::uint16_t rank = 0; rank < 3; ++rank) { // raw data goes nowhere
    for (const Built& packet : given_up.packets[rank]) {
      EXPECT_TRUE(fixture.send(packet, job.port_of(rank)).empty());
    }
  }
  job.restart(2);
  fixture.start(job);
  expect_completes(random, fixture, job, random_exchange(random, job, 1, 700));
}

/// Version 1 answered from the first run's cache.
TEST(Switch, ASecondRunOfTheSameEpochGetsSumsOfItsOwn) {
  std::mt19937 random(57);
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  for (int run = 0; run < 4; ++run) {
    fixture.start(job);
    for (std::uint32_t id = 1; id < 7; ++id) {
      expect_completes(random, fixture, job, random_exchange(random, job, id, 700));
    }
    job.restart(1);
  }
  EXPECT_EQ(fixture.accounting().frames.all_dropped(), 0u);
}

TEST(Switch, AWithdrawnRingLetsNothingRawThrough) {
  std::mt19937 random(58);
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  const Exchange made = random_exchange(random, job, 1, 700);
  fixture.send(made.packets[0][0], 0);
  fixture.withdraw(0);
  EXPECT_EQ(fixture.dropped(DropReason::ring_withdrawn), 1u);
  EXPECT_EQ(fixture.accounting().held, 0u);
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(fixture.send(job.hello(rank), job.port_of(rank)).empty())
        << "its connection is dead";
    for (const Built& packet : made.packets[rank]) {
      EXPECT_TRUE(fixture.send(packet, job.port_of(rank)).empty());
    }
  }
  job.restart(1);
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(fixture.send(job.hello(rank), job.port_of(rank)).size(), 1u) << "somebody else's now";
    EXPECT_TRUE(fixture.send(job.message(rank, 1, Bytes(16, 1))[0], job.port_of(rank)).empty());
  }
}

// ---- Rings that come while others run. ----

/// Its hosts are others than the first ring's; the third session of the switch is theirs.
RingJob another_job() {
  return RingJob(
      {.ring = 2, .world = 4, .session = kSession + 1, .first_qp = 0x900, .network_id = 1});
}

TEST(Switch, ARingJoinsWhileAnotherOneIsInMidMessage) {
  std::mt19937 random(59);
  RingJob job({.world = 3});
  RingJob other = another_job();
  SwitchFixture fixture({&job});
  fixture.start(job);
  const Exchange made = random_exchange(random, job, 1, 700);
  EXPECT_TRUE(fixture.send(made.packets[0][0], job.port_of(0)).empty());
  EXPECT_FALSE(fixture.send(other.hello(0), other.port_of(0)).empty()) << "a stranger's: forwarded";
  other.restart(1);
  other.spec().session = kSession + 1;
  EXPECT_EQ(fixture.inside().add_ring(other.ring()), 1);
  fixture.start(other);
  for (std::uint32_t id = 1; id < 4; ++id) {
    expect_completes(random, fixture, other, random_exchange(random, other, id, 700));
  }
  expect_completes(random, fixture, job, made);
}

TEST(Switch, AWithdrawnRingMayComeAgain) {
  std::mt19937 random(60);
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  fixture.withdraw(0);
  EXPECT_EQ(fixture.inside().add_ring(job.ring()), 0) << "the free index";
  job.restart(1);
  fixture.start(job);
  expect_completes(random, fixture, job, random_exchange(random, job, 1, 700));
  EXPECT_EQ(fixture.ring(0).hellos, 1u) << "counts anew";
}

/// Its places for connections come back each time, and its neighbours stay numbered.
TEST(Switch, ARingMayComeAndGoAnyNumberOfTimes) {
  std::mt19937 random(62);
  RingJob job({.world = 3});
  RingJob other = another_job();
  SwitchFixture fixture({&job});
  fixture.start(job);
  std::size_t pairs = 0;
  for (std::uint32_t epoch = 1; epoch < 100; ++epoch) {
    EXPECT_EQ(fixture.inside().add_ring(other.ring()), 1);
    EXPECT_EQ(std::exchange(pairs, fixture.inside().rings().pairs()), epoch == 1 ? 0 : pairs);
    fixture.start(other);
    expect_completes(random, fixture, other, random_exchange(random, other, 1, 700));
    expect_completes(random, fixture, job, random_exchange(random, job, epoch, 700));
    EXPECT_TRUE(fixture.send(other.message(0, 2, Bytes(16, 1))[0], other.port_of(0)).empty());
    EXPECT_EQ(fixture.accounting().held, 1u);
    fixture.withdraw(1);
    EXPECT_EQ(fixture.accounting().held, 0u);
    other.restart(epoch + 1);
  }
}

TEST(Switch, RefusesARingThatThereIsNoRoomForAndStaysAsItWas) {
  std::mt19937 random(61);
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  RingJob first = another_job();
  fixture.inside().add_ring(first.ring());
  RingJob second({.ring = 3, .world = 4, .network_id = 2});
  EXPECT_THROW(fixture.inside().add_ring(second.ring()), std::length_error);
  EXPECT_EQ(fixture.inside().rings().ring_with_id(3), std::nullopt);
  RingJob twice({.ring = 1, .world = 2, .network_id = 3});
  EXPECT_THROW(fixture.inside().add_ring(twice.ring()), std::invalid_argument);
  expect_completes(random, fixture, job, random_exchange(random, job, 1, 700));
}

// ---- Ports (protocol I12). ----

/// A frame from `port` with the address of `station`.
Bytes pretence(const wire::MacAddress& station) {
  Bytes frame(60, 0xff);
  std::copy(station.bytes.begin(), station.bytes.end(), frame.begin() + 6);
  test::put16(frame, 12, 0x0806);
  return frame;
}

TEST(Switch, NobodyStealsAMembersAddress) {
  std::mt19937 random(59);
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  fixture.send(pretence(job.mac_of(1)), 3);
  const auto where = [&] {
    return fixture.inside().stations().port_of(job.mac_of(1), fixture.now.ms());
  };
  EXPECT_EQ(where(), 1);
  expect_completes(random, fixture, job, random_exchange(random, job, 1, 700));
  fixture.reset(0);
  fixture.send(pretence(job.mac_of(1)), 3);
  EXPECT_EQ(where(), 3) << "free again";
}

/// Before its hello, a rank may also send any frames with that address.
TEST(Switch, ARanksHelloTakesNobodysAddress) {
  constexpr wire::MacAddress gateway{{0x02, 0xfe, 0, 0, 0, 1}};
  constexpr std::uint16_t gateways_port = 3;
  std::mt19937 random(61);
  for (const bool pins_ports : {false, true}) {
    for (const int frames_before : {0, 1, 5}) {
      SCOPED_TRACE(std::to_string(frames_before) + (pins_ports ? ", configured ports" : ""));
      RingJob job({.world = 3, .pins_ports = pins_ports});
      SwitchFixture fixture({&job});
      const auto where = [&] {
        return fixture.inside().stations().port_of(gateway, fixture.now.ms());
      };
      fixture.announce(job);
      fixture.send(pretence(gateway), gateways_port);
      for (int frame = 0; frame < frames_before; ++frame) {
        fixture.send(pretence(gateway), 1);
      }
      Built hello = job.hello(1);
      std::copy(gateway.bytes.begin(), gateway.bytes.end(), hello.bytes.begin() + 6);
      EXPECT_TRUE(fixture.send(job.hello(0), 0).empty());
      EXPECT_TRUE(fixture.send(hello, 1).empty());
      ASSERT_EQ(fixture.send(job.hello(2), 2).size(), 3u) << "the ring itself begins";
      fixture.send(pretence(gateway), gateways_port);
      EXPECT_EQ(where(), gateways_port) << "its owner has it back with one frame";
      expect_completes(random, fixture, job, random_exchange(random, job, 1, 700));
    }
  }
}

/// With any Ethernet address.
TEST(Switch, WhatIsForAMemberLeavesByItsPort) {
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.start(job);
  const wire::MacAddress elsewhere{{0x02, 0xdd, 0, 0, 0, 1}};
  fixture.send(pretence(elsewhere), 3);
  const auto readdressed = [&](Built frame) {
    std::copy(elsewhere.bytes.begin(), elsewhere.bytes.end(), frame.bytes.begin());
    return frame;
  };
  const Built answer = readdressed(between(job, 0, 1, 0x11, 0));
  EXPECT_EQ(fixture.send(answer, 0),
            (std::vector<Sent>{{answer.bytes, 0b0010, Departure::forwarded}}));
  Exchange made = exchange(job, 1, {Bytes(16, 1), Bytes(16, 2), Bytes(16, 3)});
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    made.packets[rank][0] = readdressed(made.packets[rank][0]);
  }
  std::mt19937 random(60);
  expect_completes(random, fixture, job, made);
}

TEST(Switch, HellosWaitInTheBooks) {
  RingJob job({.world = 3});
  SwitchFixture fixture({&job});
  fixture.announce(job);
  fixture.send(job.hello(0), 0);
  fixture.send(job.hello(1), 1);
  EXPECT_EQ(fixture.accounting().held, 2u);
  EXPECT_EQ(fixture.send(job.hello(2), 2).size(), 3u);
  EXPECT_EQ(fixture.accounting().held, 0u);
}

// ---- Sums that helpers make. ----

/// Helpers that wait until they are told which reduction to make. They leave hellos to the worker.
class PatientHelpers : public slot::ReductionHelpers {
 public:
  bool ask(slot::Reduction& sum) override {
    if (!sum.task().result.empty()) {
      asked.push_back(&sum);
    }
    return !sum.task().result.empty();
  }

  std::vector<slot::Reduction*> asked;
};

/// A ring of two with messages of one packet, and helpers.
struct HelpedRing {
  HelpedRing() { fixture.start(job); }

  /// Sends all of one message; returns what the last contribution caused.
  std::vector<Sent> complete(std::uint32_t id) {
    messages.push_back(random_exchange(random, job, id, 128));
    EXPECT_TRUE(fixture.send(messages.back().packets[0][0], 0).empty());
    return fixture.send(messages.back().packets[1][0], 1);
  }

  std::vector<Sent> results(std::size_t index) const {
    const Exchange& message = messages[index];
    return {result_sent(job, 0, message.packets[0][0], message.reduced[0]),
            result_sent(job, 1, message.packets[1][0], message.reduced[0])};
  }

  /// The results of messages, then other frames.
  std::vector<Sent> results_then(std::vector<std::size_t> indices,
                                 const std::vector<Sent>& others) const {
    std::vector<Sent> all;
    for (const std::size_t index : indices) {
      const auto some = results(index);
      all.insert(all.end(), some.begin(), some.end());
    }
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  std::mt19937 random{60};
  RingJob job{{.world = 2, .window = 256, .max_message_bytes = 256}};
  PatientHelpers helpers;
  SwitchFixture fixture{{&job}, {}, &helpers};
  std::vector<Exchange> messages;
};

TEST(HelpedSwitch, ResultsLeaveInTheOrderOfTheirSlots) {
  HelpedRing ring;
  for (std::uint32_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(ring.complete(id).empty());
  }
  EXPECT_TRUE(ring.helpers.asked[1]->make());
  EXPECT_TRUE(ring.fixture.collect().empty()) << "the first is not made";
  EXPECT_EQ(ring.fixture.accounting().held, 6u);
  EXPECT_TRUE(ring.helpers.asked[0]->make());
  EXPECT_FALSE(ring.helpers.asked[0]->make()) << "once is enough";
  EXPECT_EQ(ring.fixture.collect(), ring.results_then({0, 1}, {}));
  EXPECT_TRUE(ring.helpers.asked[2]->make());
  EXPECT_EQ(ring.fixture.collect(), ring.results(2));
}

TEST(HelpedSwitch, ARepeatMeanwhileWaitsForTheResult) {
  HelpedRing ring;
  EXPECT_TRUE(ring.complete(1).empty());
  EXPECT_TRUE(ring.fixture.send(ring.messages[0].packets[0][0], 0).empty());
  EXPECT_EQ(ring.fixture.dropped(DropReason::repeat_held), 1u);
  EXPECT_TRUE(ring.helpers.asked[0]->make());
  EXPECT_EQ(ring.fixture.collect(), ring.results(0));
}

TEST(HelpedSwitch, NothingOvertakesResultsOnItsConnection) {
  HelpedRing ring;
  EXPECT_TRUE(ring.complete(1).empty());
  EXPECT_TRUE(ring.helpers.asked[0]->make());
  EXPECT_EQ(ring.fixture.collect(), ring.results(0));

  EXPECT_TRUE(ring.complete(2).empty());
  EXPECT_EQ(ring.fixture.send(ring.messages[0].packets[1][0], 1), // a repeat of the one before
            ring.results_then({1}, {ring.results(0)[1]}));
  EXPECT_FALSE(ring.helpers.asked[1]->make()) << "the worker did not wait";

  EXPECT_TRUE(ring.complete(3).empty());
  FrameSpec plain = ring.job.frame_of(0);   // on the ring's own queue pair
  plain.psn = ring.job.first_psn_of(0) + 4; // behind hello and three messages
  plain.payload = Bytes(16, 1);
  const Built other = build(plain);
  EXPECT_EQ(
      ring.fixture.send(other, 0),
      ring.results_then({2}, {{other.bytes, port_behind(ring.job, 0), Departure::forwarded}}));
}

TEST(HelpedSwitch, OtherConnectionsDoNotWaitForSums) {
  HelpedRing ring;
  EXPECT_TRUE(ring.complete(1).empty());
  FrameSpec answer = ring.job.frame_of(0);
  answer.opcode = 0x11;
  const std::vector<Built> others{
      build(answer),                     // an ACK, with the ring's own queue pair number
      between(ring.job, 0, 1, 0x11, 0),  // another
      between(ring.job, 0, 1, 0x81, 0),  // a CNP
      between(ring.job, 0, 1, 0x0a, 16), // a plain message on a queue pair of its own
      between(ring.job, 0, 1, 0x0c, 0),  // a READ request on that
  };
  for (const Built& other : others) {
    const Sent forwarded{other.bytes, port_behind(ring.job, 0), Departure::forwarded};
    EXPECT_EQ(ring.fixture.send(other, 0), std::vector<Sent>{forwarded});
  }
  EXPECT_TRUE(ring.helpers.asked[0]->make()) << "nobody else had to";
  EXPECT_EQ(ring.fixture.collect(), ring.results(0));
}

TEST(HelpedSwitch, ARingDoesNotWaitForAnothersSums) {
  std::mt19937 random(61);
  RingJob slow({.ring = 1, .world = 2, .window = 4, .max_message_bytes = 256, .first_qp = 0x100});
  RingJob quick({.ring = 2,
                 .world = 2,
                 .window = 4,
                 .max_message_bytes = 256,
                 .session = kSession + 1,
                 .first_qp = 0x200});
  PatientHelpers helpers;
  SwitchFixture fixture({&slow, &quick}, {}, &helpers);
  fixture.start(slow);
  fixture.start(quick);
  const auto complete = [&](const Exchange& message) {
    EXPECT_TRUE(fixture.send(message.packets[0][0], 0).empty());
    EXPECT_TRUE(fixture.send(message.packets[1][0], 1).empty());
  };
  const auto results = [](const RingJob& job, const Exchange& message) {
    return std::vector<Sent>{result_sent(job, 0, message.packets[0][0], message.reduced[0]),
                             result_sent(job, 1, message.packets[1][0], message.reduced[0])};
  };
  const Exchange first = random_exchange(random, quick, 1, 128);
  complete(first);
  EXPECT_TRUE(helpers.asked[0]->make());
  EXPECT_EQ(fixture.collect(), results(quick, first));

  const Exchange held = random_exchange(random, slow, 1, 128);
  complete(held); // for a helper that never makes it
  std::vector<Sent> expected;
  for (std::uint32_t id = 2; id <= 3; ++id) {
    const Exchange next = random_exchange(random, quick, id, 128);
    complete(next);
    const auto due = results(quick, next);
    expected.insert(expected.end(), due.begin(), due.end());
  }
  expected.push_back(results(quick, first)[0]);
  EXPECT_EQ(fixture.send(first.packets[0][0], 0), expected) << "a repeat, behind its own ring's";
  EXPECT_TRUE(helpers.asked[1]->make()) << "the other ring's sum is nobody's business";
  EXPECT_EQ(fixture.collect(), results(slow, held));
  EXPECT_TRUE(fixture.collect().empty());
  EXPECT_EQ(fixture.accounting().held, 0u);
}

TEST(HelpedSwitch, AResetDoesNotTakeFramesFromHelpers) {
  HelpedRing ring;
  EXPECT_TRUE(ring.complete(1).empty());
  EXPECT_EQ(ring.fixture.reset(0), ring.results(0));
  EXPECT_FALSE(ring.helpers.asked[0]->make());
  EXPECT_EQ(ring.fixture.accounting().held, 0u);
}

TEST(HelpedSwitch, ANewRunDoesNotEither) {
  HelpedRing ring;
  EXPECT_TRUE(ring.complete(1).empty());
  const auto due = ring.results(0);
  ring.job.restart(2);
  EXPECT_TRUE(ring.fixture.send(ring.job.hello(0), 0).empty());
  const auto sent = ring.fixture.send(ring.job.hello(1), 1);
  ASSERT_EQ(sent.size(), 4u) << "the old run's results, then the new one's hellos";
  EXPECT_EQ(std::vector<Sent>(sent.begin(), sent.begin() + 2), due);
  EXPECT_EQ(ring.fixture.dropped(DropReason::incarnation_flush), 0u);
}

TEST(HelpedSwitch, WithTooMuchToWaitForTheWorkerHelpsItself) {
  HelpedRing ring;
  for (std::uint32_t id = 1; id <= slot::ReductionQueue::kMost; ++id) {
    EXPECT_TRUE(ring.complete(id).empty());
  }
  EXPECT_EQ(ring.complete(slot::ReductionQueue::kMost + 1), ring.results(0));
  for (slot::Reduction* sum : ring.helpers.asked) {
    sum->make();
  }
  std::vector<std::size_t> rest(slot::ReductionQueue::kMost);
  std::iota(rest.begin(), rest.end(), std::size_t{1});
  EXPECT_EQ(ring.fixture.collect(), ring.results_then(rest, {}));
}

// ---- Everything else is an Ethernet switch's business (protocol I2). ----

struct Scene {
  explicit Scene(std::uint16_t ports = 4)
      : fixture({&four, &six}, std::vector<std::uint32_t>(ports, kMaxFrame)) {
    if (ports == 4) {
      fixture.start(four);
      fixture.start(six);
    }
  }

  /// Three hosts over IPv4, each at its configured port; two over IPv6 that tell their queue pairs.
  RingJob four{{.ring = 1, .world = 3, .epoch = 5, .pins_ports = true, .network_id = 4}};
  RingJob six{{.ring = 2,
               .world = 2,
               .network = Network::ipv6,
               .epoch = 5,
               .session = kSession + 1,
               .first_own_qp = 0x600,
               .network_id = 6}};
  SwitchFixture fixture;

  /// Rank 0's next message of `four`, with one packet.
  Built only(const std::function<void(test::InaSpec&, FrameSpec&)>& change,
             std::size_t data_bytes = 16, std::uint16_t rank = 0) {
    test::InaSpec ina = four.ina_of(rank, 1, static_cast<std::uint32_t>(data_bytes));
    FrameSpec frame = four.frame_of(rank);
    frame.opcode = 0x0a;
    frame.psn = four.spec().first_psn + 0x10000u * rank + 1;
    change(ina, frame);
    frame.payload = test::encode(ina);
    frame.payload.resize(40 + data_bytes, 7);
    return build(frame);
  }

  /// A rank's hello of another run of `four`.
  Built hello(std::uint16_t rank, std::uint32_t epoch, std::uint32_t nonce) const {
    Built frame = four.hello(rank);
    test::put32(frame.bytes, frame.payload + test::kInaEpochAt, epoch);
    test::put32(frame.bytes, frame.payload + test::kInaSessionAt, nonce);
    seal(frame);
    return frame;
  }

  void send(const Built& frame, std::uint16_t port = 0) { fixture.send(frame, port); }
};

/// Bytes for a plain Ethernet frame.
Bytes ethernet(const wire::MacAddress& to, std::size_t bytes = 60) {
  Bytes frame(std::max<std::size_t>(bytes, 14), 0x42);
  std::copy(to.bytes.begin(), to.bytes.end(), frame.begin());
  const wire::MacAddress from{{0x02, 0xee, 0, 0, 0, 1}};
  std::copy(from.bytes.begin(), from.bytes.end(), frame.begin() + 6);
  test::put16(frame, 12, 0x88b5);
  frame.resize(bytes);
  return frame;
}

struct Foreign {
  const char* description;
  std::function<Built(Scene&)> make;
  std::optional<std::uint16_t> member = std::nullopt; // of `four`, that RoCE is sent to
};

Built stranger(std::uint8_t opcode, Network network = Network::ipv4) {
  FrameSpec spec;
  spec.network = network;
  spec.source = test::ip("192.0.2.1");
  spec.destination = test::ip("192.0.2.2");
  spec.opcode = opcode;
  spec.payload = test::encode({.collective = 1});
  return build(spec);
}

const std::vector<Foreign> kForeign{
    {"an ACK to a predecessor", [](Scene& s) { return between(s.four, 0, 2, 0x11, 0); }, 2},
    {"an ACK to a successor", [](Scene& s) { return between(s.four, 0, 1, 0x11, 0); }, 1},
    {"a READ request between neighbours", [](Scene& s) { return between(s.four, 0, 1, 0x0c, 0); },
     1},
    {"a READ response between neighbours",
     [](Scene& s) { return between(s.four, 0, 1, 0x0d, 256); }, 1},
    {"an atomic", [](Scene& s) { return between(s.four, 0, 1, 0x13, 0); }, 1},
    {"SEND ONLY with Invalidate", [](Scene& s) { return between(s.four, 0, 1, 0x17, 64); }, 1},
    {"a CNP", [](Scene& s) { return between(s.four, 0, 1, 0x81, 0); }, 1},
    {"UD", [](Scene& s) { return between(s.four, 0, 1, 0x64, 33); }, 1},
    {"UC WRITE ONLY", [](Scene& s) { return between(s.four, 0, 1, 0x2a, 64); }, 1},
    {"a message against the ring", [](Scene& s) { return between(s.four, 0, 2, 0x07, 256); }, 2},
    {"a plain message between neighbours", [](Scene& s) { return between(s.four, 0, 1, 0x0a, 9); },
     1},
    {"a SEND of nothing, padded by the NIC",
     [](Scene& s) {
       Built frame = between(s.four, 0, 1, 0x04, 0);
       frame.bytes.resize(60);
       return frame;
     },
     1},
    {"strangers' hello", [](Scene&) { return stranger(0x0a); }},
    {"strangers' middle", [](Scene&) { return stranger(0x07); }},
    {"strangers' message in v1", [](Scene&) { return stranger(0x0a, Network::v1); }},
    {"strangers' malformed frame",
     [](Scene&) {
       Built frame = stranger(0x0a);
       frame.bytes.push_back(0);
       return frame;
     }},
    {"strangers' bad ICRC",
     [](Scene&) {
       Built frame = stranger(0x0a);
       frame.bytes[frame.icrc] ^= 1;
       return frame;
     }},
    {"strangers' fragment",
     [](Scene&) {
       Built frame = stranger(0x0a);
       test::put16(frame.bytes, frame.ip + 6, 0x2000);
       return frame;
     }},
    {"a later fragment between neighbours",
     [](Scene& s) {
       Built frame = between(s.four, 0, 1, 0x0a, 64);
       test::put16(frame.bytes, frame.ip + 6, 0x2010);
       return frame;
     }},
    {"another UDP port between neighbours",
     [](Scene& s) {
       Built frame = between(s.four, 0, 1, 0x0a, 64);
       test::put16(frame.bytes, frame.udp + 2, 4790);
       return frame;
     }},
    {"a frame of 14 bytes",
     [](Scene& s) { return Built{.bytes = ethernet(s.four.mac_of(1), 14)}; }},
};

TEST(Switch, LeavesEverythingElseAlone) {
  for (const Foreign& row : kForeign) {
    for (const bool is_known : {true, false}) {
      Scene scene;
      Built frame = row.make(scene);
      const wire::MacAddress to =
          is_known ? scene.four.mac_of(2) : wire::MacAddress{{0x02, 0xdd, 0, 0, 0, 1}};
      std::copy(to.bytes.begin(), to.bytes.end(), frame.bytes.begin());
      const l2::PortSet elsewhere = is_known ? 0b0100 : 0b1110; // the result of plain Ethernet
      const l2::PortSet ports = row.member ? l2::PortSet{1} << *row.member : elsewhere;
      SCOPED_TRACE(std::string(row.description) + (is_known ? "" : ", flooded"));
      EXPECT_EQ(scene.fixture.send(frame, 0),
                (std::vector<Sent>{{frame.bytes, ports, Departure::forwarded}}));
      EXPECT_EQ(scene.fixture.accounting().frames.all_dropped(), 0u);
      EXPECT_EQ(scene.fixture.accounting().held, 0u);
      EXPECT_EQ(scene.fixture.ring(0).contributions + scene.fixture.ring(1).contributions, 5u);
    }
  }
}

TEST(Switch, FloodsOnlyToPortsThatTakeTheFrame) {
  SwitchFixture fixture({}, {100, 100, 64, 2000});
  const wire::MacAddress unknown{{0x02, 0xdd, 0, 0, 0, 1}};

  struct Row {
    std::size_t bytes;
    l2::PortSet ports;
  };

  for (const Row& row : {Row{64, 0b1110}, Row{65, 0b1010}, Row{100, 0b1010}, Row{101, 0b1000},
                         Row{2000, 0b1000}, Row{2001, 0}}) {
    const auto sent = fixture.send(ethernet(unknown, row.bytes), 0);
    ASSERT_EQ(sent.size(), row.ports == 0 ? 0u : 1u) << row.bytes;
    EXPECT_EQ(row.ports == 0 ? 0 : sent[0].ports, row.ports) << row.bytes;
  }
  EXPECT_EQ(fixture.dropped(DropReason::too_long), 1u);
  EXPECT_EQ(fixture.accounting().frames.copies, 2u + 1u + 1u);
}

// ---- Every reason there is. ----

struct DropRow {
  DropReason reason;
  std::function<void(Scene&)> act;
  std::uint16_t ports = 4;
};

void nothing(test::InaSpec&, FrameSpec&) {}

void broadcast_of_one(test::InaSpec& ina, FrameSpec&) {
  ina.collective = 2;
  ina.root = 1;
}

Built on_another_qp(Built frame) {
  frame.bytes[frame.bth + 5] ^= 0x80;
  seal(frame);
  return frame;
}

/// Message 1 of `four`, up to packet `packets` of rank `rank`.
void send_message(Scene& s, std::uint16_t rank, std::uint32_t id, std::size_t packets = 3) {
  const auto message = s.four.message(rank, id, Bytes(700, 1));
  for (std::size_t k = 0; k < packets; ++k) {
    s.send(message[k], s.four.port_of(rank));
  }
}

using test::InaSpec;

const std::vector<DropRow> kDropRows{
    {DropReason::fragment,
     [](Scene& s) { s.send(s.only([](InaSpec&, FrameSpec& f) { f.fragment = 0x2000; })); }},
    {DropReason::ipv6_extension,
     [](Scene& s) {
       FrameSpec frame = s.six.frame_of(0);
       frame.next = 60;
       frame.ip_extensions = {17, 0, 1, 4, 0, 0, 0, 0};
       s.send(build(frame));
     }},
    {DropReason::length_mismatch,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.length = 12; })); }},
    {DropReason::transport_version,
     [](Scene& s) { s.send(s.only([](InaSpec&, FrameSpec& f) { f.transport_version = 1; })); }},
    {DropReason::bad_icrc,
     [](Scene& s) {
       auto message = s.four.message(0, 1, Bytes(700, 1));
       s.send(message[0]);
       message[1].bytes[message[1].payload + 17] ^= 4;
       s.send(message[1]);
     }},
    {DropReason::result_flag,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.flags = 1; })); }},
    {DropReason::reserved_bits,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.flags = 4; })); }},
    {DropReason::unsupported_collective,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.collective = 4; })); }},
    {DropReason::unsupported_pair,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.operation = 200; })); }},
    {DropReason::operator_not_granted,
     [](Scene& s) {
       s.send(s.only([](InaSpec& i, FrameSpec&) { i.operation = 128, i.data_type = 255; }));
     }},
    {DropReason::bad_hello,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.collective = 1; })); }},
    {DropReason::wrong_session,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.session = 3; })); }},
    {DropReason::wrong_epoch,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.epoch = 6; })); }},
    {DropReason::partial_flag,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.flags = 2; })); }},
    {DropReason::bad_root,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.root = 1; })); }},
    {DropReason::barrier_data,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.collective = 3; })); }},
    {DropReason::bad_nonce, [](Scene& s) { s.send(s.hello(0, 5, 0)); }},
    {DropReason::bad_ack_timeout,
     [](Scene& s) {
       Built hello = s.hello(0, 5, 7);
       hello.bytes[hello.payload + test::kInaAckTimeoutAt] = 32;
       seal(hello);
       s.send(hello);
     }},
    {DropReason::old_epoch, [](Scene& s) { s.send(s.hello(0, 4, 7)); }},
    {DropReason::retired_nonce,
     [](Scene& s) {
       s.fixture.reset(0);
       s.send(s.four.hello(0));
     }},
    {DropReason::hello_elsewhere, [](Scene& s) { s.send(on_another_qp(s.four.hello(0))); }},
    {DropReason::hello_conflict,
     [](Scene& s) {
       s.send(s.hello(0, 5, 7));
       s.send(on_another_qp(s.hello(0, 5, 7)));
     }},
    {DropReason::hello_displaced,
     [](Scene& s) {
       for (std::uint32_t nonce = 1; nonce <= 5; ++nonce) {
         s.send(s.hello(0, 5, nonce));
       }
     }},
    {DropReason::hello_overtaken,
     [](Scene& s) {
       s.send(s.hello(0, 5, 7));
       FrameSpec plain = s.four.frame_of(0);
       plain.psn = s.four.spec().first_psn + 1;
       s.send(build(plain));
     }},
    {DropReason::hello_given_up,
     [](Scene& s) {
       s.send(s.hello(0, 5, 7));
       for (const std::uint16_t rank : {0, 1, 2}) {
         s.send(s.hello(rank, 5, 8), rank);
       }
     }},
    {DropReason::ring_draining,
     [](Scene& s) {
       s.fixture.drain(0);
       s.send(s.hello(0, 5, 7));
     }},
    {DropReason::unsupported_request,
     [](Scene& s) {
       FrameSpec read = s.four.frame_of(0);
       read.opcode = 0x0c;
       s.send(build(read));
     }},
    {DropReason::unannounced,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.ring = 77; })); }},
    {DropReason::disagree_collective,
     [](Scene& s) {
       s.send(s.only(nothing));
       s.send(s.only([](InaSpec& i, FrameSpec&) { i.collective = 2; }, 16, 1), 1);
     }},
    {DropReason::ring_withdrawn,
     [](Scene& s) {
       s.send(s.only(nothing));
       s.fixture.withdraw(0);
     }},
    {DropReason::message_too_long,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.length = 1 << 20; })); }},
    {DropReason::partial_element, [](Scene& s) { s.send(s.only(nothing, 15)); }},
    {DropReason::no_connection,
     [](Scene& s) { s.send(s.only([](InaSpec&, FrameSpec& f) { f.qp = 0x999; })); }},
    {DropReason::unclassified, [](Scene& s) { s.send(between(s.four, 0, 1, 0x07, 256)); }},
    {DropReason::dead_connection,
     [](Scene& s) {
       s.fixture.reset(0);
       s.send(s.four.message(0, 1, Bytes(700, 1))[1]);
     }},
    {DropReason::wrong_port,
     [](Scene& s) {
       const auto message = s.four.message(0, 1, Bytes(700, 1));
       s.send(message[0]);
       s.send(message[1], 3);
     }},
    {DropReason::window_exceeded,
     [](Scene& s) { s.send(s.only([](InaSpec& i, FrameSpec&) { i.message = 3; })); }},
    {DropReason::history_conflict,
     [](Scene& s) {
       s.send(s.only(nothing));
       s.send(s.only([](InaSpec&, FrameSpec& f) { f.psn += 100; }));
     }},
    {DropReason::unknown_message, [](Scene& s) { s.send(s.four.message(0, 1, Bytes(700, 1))[1]); }},
    {DropReason::out_of_turn,
     [](Scene& s) {
       FrameSpec plain = s.four.frame_of(0);
       plain.psn = s.four.first_psn_of(0) + 2; // behind the result of message 1, which is to come
       s.send(build(plain));
     }},
    {DropReason::stale_repeat,
     [](Scene& s) { // the hello has left the history
       for (std::uint32_t id = 1; id <= 4; ++id) {
         for (const std::uint16_t rank : {0, 1, 2}) {
           send_message(s, rank, id);
         }
       }
       s.send(s.four.hello(0));
     }},
    {DropReason::repeat_swallowed, [](Scene& s) { s.send(s.six.hello(0)); }},
    {DropReason::nak_mended,
     [](Scene& s) { s.send(build(s.six.answer_to(0, 0x60, s.six.first_psn_of(0))), 1); }},
    {DropReason::disagree_operation,
     [](Scene& s) {
       s.send(s.only(nothing));
       s.send(s.only([](InaSpec& i, FrameSpec&) { i.operation = 1; }, 16, 1), 1);
     }},
    {DropReason::disagree_type,
     [](Scene& s) {
       s.send(s.only(nothing));
       s.send(s.only([](InaSpec& i, FrameSpec&) { i.data_type = 0; }, 16, 1), 1);
     }},
    {DropReason::disagree_length,
     [](Scene& s) {
       s.send(s.only(nothing));
       s.send(s.only(nothing, 20, 1), 1);
     }},
    {DropReason::disagree_root,
     [](Scene& s) {
       s.send(s.only([](InaSpec& i, FrameSpec&) { i.collective = 2; }));
       s.send(s.only(broadcast_of_one, 16, 1), 1);
     }},
    {DropReason::repeat_held,
     [](Scene& s) {
       s.send(s.only(nothing));
       s.send(s.only(nothing));
     }},
    {DropReason::window_violation,
     [](Scene& s) { // 5 meets 1, which no other rank has sent; 2, 3 and 4 fill M up to it
       for (const std::uint32_t id : {1u, 3u}) {
         send_message(s, 0, id, 1);
       }
       send_message(s, 0, 5, 1);
     }},
    {DropReason::incarnation_flush,
     [](Scene& s) {
       s.send(s.only(nothing));
       for (const std::uint16_t rank : {0, 1, 2}) {
         s.send(on_another_qp(s.hello(rank, 5, 7)), rank);
       }
     }},
    {DropReason::ring_reset,
     [](Scene& s) {
       s.send(s.only(nothing));
       s.fixture.reset(0);
     }},
    {DropReason::runt, [](Scene& s) { s.fixture.send(ethernet(s.four.mac_of(1), 13), 0); }},
    {DropReason::same_port, [](Scene& s) { s.fixture.send(ethernet(s.four.mac_of(1)), 1); }},
    {DropReason::link_local,
     [](Scene& s) { s.fixture.send(ethernet(test::mac("01:80:c2:00:00:0e")), 1); }},
    {DropReason::no_egress,
     [](Scene& s) { s.fixture.send(ethernet(test::mac("ff:ff:ff:ff:ff:ff")), 0); }, 1},
    {DropReason::not_bridged,
     [](Scene& s) {
       s.fixture.inside().bridge().shut(0b1000, l2::Bridge::Why::configured);
       s.fixture.send(ethernet(s.four.mac_of(1)), 3);
     }},
    {DropReason::tied_elsewhere,
     [](Scene& s) {
       ASSERT_TRUE(s.fixture.inside().stations().tie(test::mac("02:ee:00:00:00:01"), 2, 0));
       s.fixture.send(ethernet(s.four.mac_of(1)), 3);
     }},
    {DropReason::loop_probe,
     [](Scene& s) {
       s.fixture.inside().probes().are_sent = true;
       const wire::LoopProbeFrame frame = frame_of(wire::loop_probe(0, 0, 0));
       s.fixture.send(Bytes(frame.begin(), frame.end()), 3);
     }},
    {DropReason::too_long,
     [](Scene& s) { s.fixture.send(ethernet(s.four.mac_of(1), kMaxFrame + 1), 0); }},
};

/// Why no frame can cause these drop reasons.
const std::map<DropReason, const char*> kOutOfReach{
    {DropReason::not_contiguous, "lcores over DPDK's mbufs"},
    {DropReason::worker_queue_full, "lcores"},
    {DropReason::ring_queue_full, "a worker with lines (fair_queue_test)"},
    {DropReason::region_queue_full, "a region (region_lines_test)"},
    {DropReason::tenant_rate, "a tenant with a rate (fair_queue_test)"},
    {DropReason::tx_queue_full, "lcores"},
    {DropReason::tx_backlog_full, "lcores"},
    {DropReason::ring_tx_queue_full, "lcores"},
    {DropReason::ring_tx_backlog_full, "lcores"},
    {DropReason::port_closed, "lcores"},
    {DropReason::wrong_nonce, "a ring that was made for one run (MadeRing)"},
    {DropReason::connection_table_full,
     "room is for more than live connections and waiting hellos (connection_table_test)"},
    {DropReason::raw_from_switch, "a tree of switches (tree_test)"},
    {DropReason::raw_from_parent, "a tree of switches (tree_test)"},
    {DropReason::queue_pair_untold, "a tree of switches (tree_test)"},
    {DropReason::ring_differs, "a tree of switches (tree_test)"},
    {DropReason::range_differs, "a tree of switches (tree_test)"},
    {DropReason::total_without_set, "a tree of switches (tree_test)"},
    {DropReason::partial_of_unknown_ring, "a tree of switches (tree_test)"},
    {DropReason::total_early, "a tree of switches (tree_test)"},
    {DropReason::operator_tables_differ, "hellos with operators (by_operator_test)"},
    {DropReason::operator_disagrees, "a kernel of an operator (by_operator_test)"},
    {DropReason::disagree_payload,
     "the classifier has held each payload's size against the message's shape (slot_test)"},
    {DropReason::region_impostor, "a region (region_test)"},
    {DropReason::region_unknown, "a region (region_test)"},
    {DropReason::region_elsewhere, "a region (region_test)"},
    {DropReason::region_early, "a region (region_test)"},
    {DropReason::region_gap, "a region (region_test)"},
    {DropReason::region_repeat, "a region (region_test)"},
    {DropReason::region_window, "a region (region_test)"},
    {DropReason::region_request, "a region (region_test)"},
    {DropReason::region_key, "a region (region_test)"},
    {DropReason::region_ghost, "a region (region_test)"},
    {DropReason::region_response, "a region with views (region_pull_test)"},
    {DropReason::region_ended, "a region (region_test)"},
};

// ---- What goes before what (protocol I12). ----

TEST(Switch, ResultsAndAnswersOfNeighboursGoFirst) {
  using frame::TrafficClass;
  std::mt19937 random(48);
  RingJob job({.world = 3, .window = 1, .max_message_bytes = 256});
  SwitchFixture fixture({&job});
  fixture.start(job);
  fixture.classes();
  std::vector<Exchange> messages;
  for (std::uint32_t id = 1; id <= 3; ++id) {
    messages.push_back(random_exchange(random, job, id, 128));
    expect_completes(random, fixture, job, messages.back());
  }
  EXPECT_EQ(fixture.classes(), std::vector<TrafficClass>(9, TrafficClass::ring)) << "results";
  fixture.send(messages[2].packets[0][0], 0);
  EXPECT_EQ(fixture.classes(), std::vector<TrafficClass>{TrafficClass::ring}) << "from the cache";

  struct Row {
    const char* description;
    std::uint16_t port;
    Built frame;
    TrafficClass expected;
  };

  const auto tcp = [&] {
    FrameSpec spec = job.frame_of(0);
    spec.udp_destination = 5001;
    spec.payload = Bytes(100, 7);
    return build(spec);
  };
  const std::vector<Row> rows{
      {"an ACK or NAK to the predecessor", 1, between(job, 1, 0, 0x11, 0), TrafficClass::ring},
      {"the same from rank 0", 0, between(job, 0, 2, 0x11, 0), TrafficClass::ring},
      {"a CNP to the predecessor", 1, between(job, 1, 0, 0x81, 0), TrafficClass::ring},
      {"a CNP to the successor", 0, between(job, 0, 1, 0x81, 0), TrafficClass::ring},
      {"a READ response", 1, between(job, 1, 0, 0x0f, 16), TrafficClass::ring},
      {"a READ request", 0, between(job, 0, 1, 0x0c, 0), TrafficClass::other},
      {"a plain message", 0, between(job, 0, 1, 0x0a, 16), TrafficClass::other},
      {"a plain message to the predecessor", 1, between(job, 1, 0, 0x0a, 16), TrafficClass::other},
      {"UD", 0, between(job, 0, 1, 0x64, 16), TrafficClass::other},
      {"what is no RoCE", 0, tcp(), TrafficClass::other},
      {"a stranger's ACK", 0, stranger_to_member(job, 0x11), TrafficClass::other},
      {"a stranger's CNP", 0, stranger_to_member(job, 0x81), TrafficClass::other},
  };
  for (const Row& row : rows) {
    EXPECT_FALSE(fixture.send(row.frame, row.port).empty()) << row.description;
    EXPECT_EQ(fixture.classes(), std::vector<TrafficClass>{row.expected}) << row.description;
  }
}

TEST(Switch, EveryDropReasonCanHappenAloneAndEndsTheFrame) {
  std::set<DropReason> seen;
  for (const DropRow& row : kDropRows) {
    Scene scene(row.ports);
    SCOPED_TRACE(std::string(name_of(row.reason)));
    row.act(scene);
    EXPECT_EQ(scene.fixture.dropped(row.reason), 1u);
    EXPECT_EQ(scene.fixture.accounting().frames.all_dropped(), 1u);
    EXPECT_TRUE(seen.insert(row.reason).second);
  }
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    const auto reason = static_cast<DropReason>(i);
    EXPECT_NE(seen.contains(reason), kOutOfReach.contains(reason)) << name_of(reason);
  }
}

struct ForeignRow {
  ForeignReason reason;
  std::function<void(InaSpec&, FrameSpec&)> change; // of a hello
};

TEST(Switch, EveryForeignReasonCanHappenAndTheFramePasses) {
  const std::vector<ForeignRow> rows{
      {ForeignReason::unknown_version, [](InaSpec& i, FrameSpec&) { i.version = 9; }},
      {ForeignReason::unknown_ring, [](InaSpec& i, FrameSpec&) { i.ring = 9; }},
      {ForeignReason::world_mismatch, [](InaSpec& i, FrameSpec&) { i.world = 9; }},
      {ForeignReason::rank_out_of_range, [](InaSpec& i, FrameSpec&) { i.rank = 3; }},
      {ForeignReason::source_mismatch, [](InaSpec& i, FrameSpec&) { i.rank = 2; }},
      {ForeignReason::destination_mismatch,
       [](InaSpec& i, FrameSpec& f) { // a neighbour in the other ring, whose rank 0 is its own
         i.ring = 3;
         i.world = 4;
         f.qp = 0x888;
       }},
  };
  std::set<ForeignReason> seen;
  for (const ForeignRow& row : rows) {
    SCOPED_TRACE(std::string(name_of(row.reason)));
    Scene scene;
    RingJob four = scene.four;
    // A third ring begins at the same host and goes on to others: <0, 1> is no pair of it.
    RingJob other({.ring = 3, .world = 4, .network_id = 4});
    std::vector<ring::RingSpec> rings{four.ring(), scene.six.ring(), other.ring()};
    std::swap(rings[2].members[1], rings[2].members[3]);
    FramePool pool;
    RecordingSink sink(pool);
    InlineSwitch::Settings settings;

    InlineSwitch device(rings, SwitchFixture::all_ports(), settings, sink);
    sink.attach(device);
    const auto hello = [&row](InaSpec& ina, FrameSpec& spec) {
      ina.collective = 1;
      ina.message = 0;
      row.change(ina, spec);
    };
    const Built frame = scene.only(hello, 0);
    device.accept(pool.make(frame.bytes, 0), {});
    const auto sent = sink.take();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].bytes, frame.bytes);
    EXPECT_EQ(sent[0].departure, Departure::forwarded);
    EXPECT_EQ(sent[0].ports & 1, 0u);
    const auto& foreign = device.accounting().frames.foreign;
    EXPECT_EQ(foreign[static_cast<std::size_t>(row.reason)], 1u);
    EXPECT_EQ(device.accounting().frames.all_dropped(), 0u);
    EXPECT_TRUE(device.accounting().balances());
    seen.insert(row.reason);
  }
  EXPECT_EQ(seen.size(), kForeignReasons);
}

TEST(Switch, ARingCountsItsOwnDrops) {
  Scene scene;
  scene.send(scene.only(nothing));
  scene.send(scene.only(nothing));
  const auto count = [&](std::uint16_t ring, DropReason reason) {
    return scene.fixture.ring(ring).dropped[static_cast<std::size_t>(reason)];
  };
  EXPECT_EQ(count(0, DropReason::repeat_held), 1u);
  EXPECT_EQ(count(1, DropReason::repeat_held), 0u);
}

// ---- Bad input (protocol I4). ----

TEST(Switch, ATruncatedFrameNeverContributes) {
  for (const Network network : kNetworks) {
    RingJob job({.world = 2, .network = network, .tags = {{0x8100, 1}}, .type = DataType::u8});
    SwitchFixture fixture({&job});
    fixture.start(job);
    const Bytes data(256 * 3 - 40 - 3, 9);
    std::vector<Built> frames = job.message(0, 1, data);
    frames.push_back(job.hello(0));
    frames.push_back(job.message(0, 2, Bytes(21, 9))[0]);
    for (const Built& whole : frames) {
      const frame::RingCounters before = fixture.ring();
      for (std::size_t length = 0; length < whole.bytes.size(); ++length) {
        const Bytes cut(whole.bytes.begin(),
                        whole.bytes.begin() + static_cast<std::ptrdiff_t>(length));
        for (const Sent& sent : fixture.send(cut, 0)) {
          ASSERT_EQ(sent.departure, Departure::forwarded);
          ASSERT_EQ(sent.bytes, cut);
          ASSERT_LT(length, whole.bth) << "RoCE between neighbours got through";
        }
        ASSERT_EQ(fixture.accounting().held, 0u);
      }
      EXPECT_EQ(fixture.ring().contributions, before.contributions);
      EXPECT_EQ(fixture.ring().cached_results, before.cached_results);
    }
    std::mt19937 random(53);
    expect_completes(random, fixture, job, exchange(job, 1, {data, Bytes(data.size(), 4)}));
  }
}

/// Any covered bit of a ring's frame is damaged: the frame is dropped, or taken for something else
/// and forwarded unchanged.
TEST(Switch, ADamagedFrameNeverContributes) {
  for (const Network network : kNetworks) {
    RingJob job({.world = 2, .network = network});
    SwitchFixture fixture({&job});
    fixture.start(job);
    const auto message = job.message(0, 1, Bytes(300, 9));
    for (std::size_t k = 0; k < 2; ++k) {
      const frame::RingCounters before = fixture.ring();
      const std::uint64_t held = fixture.accounting().held;
      for (std::size_t at = message[k].ip; at < message[k].bytes.size(); ++at) {
        for (unsigned bit = 0; bit < 8; ++bit) {
          if (!is_covered(message[k], at, bit)) {
            continue;
          }
          Bytes damaged = message[k].bytes;
          damaged[at] ^= static_cast<std::uint8_t>(1u << bit);
          for (const Sent& sent : fixture.send(damaged, 0)) {
            ASSERT_EQ(sent.departure, Departure::forwarded);
            ASSERT_EQ(sent.bytes, damaged);
          }
        }
      }
      EXPECT_EQ(fixture.ring().contributions, before.contributions);
      EXPECT_EQ(fixture.accounting().held, held);
      EXPECT_EQ(fixture.inside().worker().incarnations().incarnation_of(0)->epoch, 1u);
      EXPECT_TRUE(fixture.send(message[k], 0).empty());
      EXPECT_EQ(fixture.accounting().held, held + 1);
    }
  }
}

TEST(Switch, SurvivesNoiseAndLeaksNothing) {
  std::mt19937 random(54);
  Scene scene;
  std::vector<std::pair<Built, std::uint16_t>> frames{{scene.four.hello(0), 0},
                                                      {scene.six.hello(1), 1}};
  for (std::uint32_t id = 1; id < 5; ++id) {
    for (const Built& packet : scene.four.message(0, id, Bytes(700, 1))) {
      frames.emplace_back(packet, 0);
    }
    for (const Built& packet : scene.six.message(1, id, Bytes(700, 1))) {
      frames.emplace_back(packet, 1);
    }
  }
  for (int round = 0; round < 30000; ++round) {
    auto [frame, port] = frames[random() % frames.size()];
    for (unsigned changes = random() % 4; changes-- > 0;) {
      const std::size_t span = random() % 2 == 0 ? frame.bytes.size() : frame.payload + 40;
      frame.bytes[random() % std::min(span, frame.bytes.size())] =
          static_cast<std::uint8_t>(random());
    }
    if (random() % 2 == 0) {
      seal(frame); // a forger with a valid ICRC
    }
    if (random() % 8 == 0) {
      frame.bytes.resize(random() % (frame.bytes.size() + 9));
    }
    scene.fixture.send(frame, random() % 8 == 0 ? static_cast<std::uint16_t>(random() % 4) : port);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  scene.fixture.reset(0);
  scene.fixture.reset(1);
  EXPECT_EQ(scene.fixture.accounting().held, 0u);
}

// ---- What people see. ----

TEST(Switch, TraceTellsAFramesStory) {
  RingJob job({.world = 2});
  SwitchFixture fixture({&job});
  fixture.start(job);
  frame::Trace& trace = fixture.inside().trace();
  EXPECT_TRUE(trace.snapshot().empty());
  trace.switch_on();
  const auto first = job.message(0, 1, Bytes(16, 1));
  const auto second = job.message(1, 1, Bytes(16, 1));
  fixture.send(first[0], 0);
  fixture.send(first[0], 0);
  fixture.send(second[0], 1);
  fixture.send(second[0], 1);
  fixture.send(stranger(0x11), 3);
  trace.switch_off();
  fixture.send(stranger(0x11), 3);

  struct Row {
    frame::TraceEvent event;
    StageId stage;
    std::uint16_t rank;
    std::uint64_t egress;
  };

  const std::vector<Row> expected{
      {frame::TraceEvent::held, StageId::aggregate, 0, 0},
      {frame::TraceEvent::dropped, StageId::aggregate, 0, 0},
      {frame::TraceEvent::completed, StageId::aggregate, 1, 0},
      {frame::TraceEvent::result, StageId::emit, 0, 0b10},
      {frame::TraceEvent::result, StageId::emit, 1, 0b01},
      {frame::TraceEvent::repeated, StageId::emit, 1, 0},
      {frame::TraceEvent::cached_result, StageId::emit, 1, 1},
      {frame::TraceEvent::forwarded, StageId::forward, 0, 0b0111},
  };
  const auto records = trace.snapshot();
  ASSERT_EQ(records.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(records[i].event, expected[i].event);
    EXPECT_EQ(stage_of(records[i]), expected[i].stage);
    EXPECT_EQ(records[i].child, expected[i].rank);
    EXPECT_EQ(records[i].egress, expected[i].egress);
    EXPECT_EQ(records[i].now_ns, fixture.now.ns);
  }
  EXPECT_EQ(records[1].drop, DropReason::repeat_held);
  EXPECT_EQ(records[3].message, 1u);
  EXPECT_EQ(records[3].qp, job.qp_of(0));
  EXPECT_EQ(records[3].psn, (job.spec().first_psn + 1) & 0xffffff);
}

TEST(Trace, KeepsTheLast) {
  frame::Trace trace;
  trace.switch_on();
  for (std::uint64_t i = 0; i < frame::Trace::kRecords + 10; ++i) {
    trace.add({.now_ns = i});
  }
  const auto records = trace.snapshot();
  ASSERT_EQ(records.size(), frame::Trace::kRecords);
  EXPECT_EQ(records.front().now_ns, 10u);
  EXPECT_EQ(records.back().now_ns, frame::Trace::kRecords + 9);
  trace.switch_on();
  EXPECT_TRUE(trace.snapshot().empty());
}

TEST(Counters, AddUp) {
  frame::FrameCounters a;
  frame::FrameCounters b;
  a.received = 1;
  b.received = 10;
  b.forwarded = 2;
  b.copies = 3;
  b.copies_dropped = 4;
  b.count(Departure::consumed);
  b.count(DropReason::runt);
  b.count(ForeignReason::source_mismatch);
  a += b;
  a += b;
  EXPECT_EQ(a.received, 21u);
  EXPECT_EQ(a.forwarded, 4u);
  EXPECT_EQ(a.consumed, 2u);
  EXPECT_EQ(a.copies, 6u);
  EXPECT_EQ(a.copies_dropped, 8u);
  EXPECT_EQ(a.all_dropped(), 2u);
  EXPECT_EQ(a.dropped[static_cast<std::size_t>(DropReason::runt)], 2u);
  EXPECT_EQ(a.foreign[static_cast<std::size_t>(ForeignReason::source_mismatch)], 2u);
}

TEST(Counters, HistogramCountsBySignificantBits) {
  frame::Histogram histogram;
  for (const std::uint64_t value : {0ull, 1ull, 2ull, 3ull, 4ull, ~0ull}) {
    histogram.add(value);
  }
  EXPECT_EQ(histogram.counts[0], 1u);
  EXPECT_EQ(histogram.counts[1], 1u);
  EXPECT_EQ(histogram.counts[2], 2u);
  EXPECT_EQ(histogram.counts[3], 1u);
  EXPECT_EQ(histogram.counts[frame::Histogram::kBuckets - 1], 1u);
  histogram += histogram;
  EXPECT_EQ(histogram.counts[2], 4u);
}

TEST(Switch, SlotTimesRunFromTheFirstContributionToTheLast) {
  RingJob job({.world = 2});
  SwitchFixture fixture({&job});
  fixture.start(job);
  const auto first = job.message(0, 1, Bytes(16, 1));
  const auto second = job.message(1, 1, Bytes(16, 1));
  fixture.send(first[0], 0);
  fixture.now = frame::Instant{fixture.now.ns + 1000};
  fixture.send(second[0], 1);
  EXPECT_EQ(fixture.ring().slot_time_ns.counts[10], 1u); // 512 .. 1023 ns
  const Worker& worker = fixture.inside().worker();
  std::vector<ConnectionSnapshot> connections;
  snapshot_connections(worker, fixture.inside().rings(),
                       {0, worker.incarnations().connections().places()}, fixture.now, connections);
  EXPECT_EQ(connections.size(), 2u);
}

} // namespace
} // namespace weir::stage::switch_test
