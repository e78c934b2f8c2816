// SPDX-License-Identifier: BSD-3-Clause

/// Rings of the same hosts on different workers: what tells them apart is the queue pair alone.

#include "switch_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace weir::stage::parallel_rings_test {
namespace {

constexpr std::uint16_t kWorkers = 2;

/// The job's ring number `place`, from 0 on: the same hosts, queue pairs of its own.
RingJob ring_of_job(std::uint16_t place) {
  return RingJob({.ring = 10u + place,
                  .world = 3,
                  .first_psn = 0x1000u * (place + 1u),
                  .first_qp = 0x100u * (place + 1u),
                  .first_own_qp = 0x1000u * (place + 1u),
                  .ack_timeout = 14,
                  .ports = 3,
                  .pins_ports = true});
}

/// Sends one message of each rank; the last packet of each slot brings the sums.
void expect_sums(SwitchFixture& fixture, RingJob& job, std::uint32_t message) {
  std::mt19937 random(message);
  std::vector<Bytes> inputs;
  std::vector<std::vector<Built>> packets;
  for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
    inputs.push_back(random_data(random, job.spec().type, 400));
    packets.push_back(job.message(rank, message, inputs.back()));
  }
  const Bytes sum = fold(job.spec().type, job.spec().operation, inputs);
  std::size_t done = 0;
  for (std::size_t packet = 0; packet < packets[0].size(); ++packet) {
    const std::size_t bytes = test::data_of(packets[0][packet]).size();
    const Bytes part(sum.begin() + static_cast<std::ptrdiff_t>(done),
                     sum.begin() + static_cast<std::ptrdiff_t>(done + bytes));
    done += bytes;
    std::vector<Sent> sent;
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      sent = fixture.send(packets[rank][packet], job.port_of(rank));
    }
    ASSERT_EQ(sent.size(), job.spec().world);
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      EXPECT_EQ(sent[rank], result_sent(job, rank, packets[rank][packet], part));
    }
  }
}

struct ParallelRings : testing::Test {
  ParallelRings() {
    fixture.announce(first);
    greet(first);
    greet(second);
  }

  void greet(RingJob& job) {
    std::vector<Sent> sent;
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      sent = fixture.send(job.hello(rank), job.port_of(rank));
    }
    EXPECT_EQ(sent.size(), job.spec().world);
  }

  /// Contributions that the worker's rings have had.
  std::uint64_t contributions(std::uint16_t ring) {
    return fixture.inside().worker_of(ring).counters_of(ring).contributions;
  }

  RingJob first = ring_of_job(0);
  RingJob second = ring_of_job(1);
  SwitchFixture fixture{{&first, &second}, {}, nullptr, 0, kWorkers};
};

TEST_F(ParallelRings, HaveAWorkerEach) {
  EXPECT_NE(&fixture.inside().worker_of(0), &fixture.inside().worker_of(1));
  for (const std::uint32_t message : {1U, 2U}) {
    expect_sums(fixture, first, message);
    expect_sums(fixture, second, message);
  }
  EXPECT_EQ(contributions(0), contributions(1));
}

TEST_F(ParallelRings, AHelloThatComesAgainMeetsItsOwnRing) {
  for (RingJob* job : {&first, &second}) {
    EXPECT_TRUE(fixture.send(job->hello(1), job->port_of(1)).size() <= 1); // at most an ACK
    expect_sums(fixture, *job, 1);
  }
  EXPECT_EQ(fixture.dropped(DropReason::repeat_swallowed), 2U);
}

TEST_F(ParallelRings, AcknowledgementsReachTheRingThatTheyAreFor) {
  for (RingJob* job : {&first, &second}) {
    expect_sums(fixture, *job, 1);
    const std::uint16_t ring = job == &first ? 0 : 1;
    const std::uint32_t last = job->first_psn_of(0) + 2; // its hello, and two packets
    const Built ack = test::build(job->answer_to(0, 0x1f, last, 2));
    EXPECT_EQ(fixture.send(ack, job->port_of(1)).size(), 1U);
    const auto& flow = fixture.inside().worker_of(ring).incarnations().flow_of({ring, 0});
    EXPECT_EQ(flow.unacknowledged, last + 1) << job->spec().ring;
  }
}

/// The second ring's next run has the first one's queue pairs. Its last hello ends the first ring's
/// connections, and nothing that comes then on them is the first ring's.
TEST_F(ParallelRings, AConnectionMovesWithTheQueuePair) {
  expect_sums(fixture, first, 1);
  RingJob next({.ring = 11,
                .world = 3,
                .epoch = 2,
                .nonce = 0x77,
                .session = test::kSession + 1,
                .first_psn = 0x9000,
                .first_qp = 0x100,
                .first_own_qp = 0x1000,
                .ack_timeout = 14,
                .ports = 3,
                .pins_ports = true});
  const auto is_live = [&](std::uint16_t ring) {
    return fixture.inside().worker_of(ring).incarnations().flow_of({ring, 0}).is_live;
  };
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    fixture.send(next.hello(rank), next.port_of(rank));
  }
  EXPECT_TRUE(is_live(0)) << "some members alone end nothing";
  expect_sums(fixture, first, 2);
  next.spec().session = test::kSession + 1;
  EXPECT_EQ(fixture.send(next.hello(2), next.port_of(2)).size(), 3U) << "the results";
  next.spec().session = fixture.inside().worker_of(1).incarnations().session_of(1);
  expect_sums(fixture, next, 1);
  fixture.poll_timers();
  EXPECT_FALSE(is_live(0));
  EXPECT_TRUE(is_live(1));
  const std::uint64_t before = contributions(0);
  for (const Built& packet : first.message(0, 3, Bytes(400))) {
    for (const Sent& sent : fixture.send(packet, first.port_of(0))) {
      EXPECT_EQ(sent.departure, Departure::consumed);
      EXPECT_LT(sent.bytes.size(), packet.bytes.size()) << "it may ask for what the ring lacks";
    }
  }
  EXPECT_EQ(contributions(0), before);
}

TEST_F(ParallelRings, NoRawDataPassesOnAWithdrawnRingsConnection) {
  fixture.withdraw(1);
  for (const Built& packet : second.message(0, 1, Bytes(400))) {
    for (const Sent& sent : fixture.send(packet, second.port_of(0))) {
      EXPECT_EQ(sent.departure, Departure::consumed);
      EXPECT_LT(sent.bytes.size(), packet.bytes.size()) << "it may tell that the ring is gone";
    }
  }
  expect_sums(fixture, first, 1);
}

/// What a queue pair was before its hello counts no more, though the hello goes on to another
/// worker than the one that saw the plain message.
TEST_F(ParallelRings, AHelloEndsWhatWasPlain) {
  FrameSpec plain = second.frame_of(0);
  plain.qp = 0x999;
  plain.opcode = test::opcode_of(test::Verb::write, 0, 3);
  plain.payload = Bytes(256);
  EXPECT_EQ(fixture.send(test::build(plain), 0).size(), 1U);
  RingJob late({.ring = 11,
                .world = 3,
                .epoch = 3,
                .nonce = 0x88,
                .first_qp = 0x999,
                .first_own_qp = 0x3000,
                .ports = 3,
                .pins_ports = true});
  fixture.send(late.hello(0), 0);
  plain.opcode = test::opcode_of(test::Verb::write, 1, 3);
  EXPECT_TRUE(fixture.send(test::build(plain), 0).empty()) << "the rest of it would be raw data";
}

} // namespace
} // namespace weir::stage::parallel_rings_test
