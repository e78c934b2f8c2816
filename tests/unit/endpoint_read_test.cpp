// SPDX-License-Identifier: BSD-3-Clause

/// RDMA READ: what the requester asks for and takes, and what the responder answers.

#include "endpoint/read_answers.hpp"
#include "endpoint_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace weir::endpoint::endpoint_read_test {
namespace {

using wire::Opcode;

void give_all(QueuePair& to, const std::vector<Bytes>& frames, TimePoint now = kStart) {
  for (const Bytes& frame : frames) {
    Pair::give(to, frame, now);
  }
}

/// Whose memory holds the pattern.
struct ReadPair : Pair {
  explicit ReadPair(const QueuePairConfig& config = reading_config()) : Pair(config) {
    memory = pattern(memory.size());
    table.remove(kRemoteKey);
    table.add(kRemoteKey, kRemoteBase, memory, Access::read_and_write);
  }

  Bytes memory_at(std::size_t offset, std::size_t bytes) const {
    const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
  }

  /// What B answers to all that A has to send.
  std::vector<Bytes> answers(TimePoint now = kStart) {
    give_all(b, drain(a, now), now);
    return drain(b, now);
  }
};

// --- frames against scapy's ---------------------------------------------------------------------

class ReadFrames : public testing::TestWithParam<int> {
 protected:
  std::vector<Bytes> vectors(const std::string& scenario) const {
    std::vector<Bytes> frames = vectors_of(scenario + "_ipv" + std::to_string(GetParam()));
    EXPECT_FALSE(frames.empty()) << scenario;
    return frames;
  }

  /// A peer's request for `bytes` bytes from `had` on, of which each packet has 256.
  Bytes request(std::uint32_t psn, std::uint32_t had, std::uint32_t bytes) const {
    PacketWriter peer(mirrored(reading_config(GetParam())));
    Bytes frame(peer.max_frame_bytes());
    frame.resize(peer.write_request(frame,
                                    {.opcode = Opcode::read_request,
                                     .ack_request = AckRequest::yes,
                                     .psn = wire::psn_add(psn, had / 256),
                                     .remote_address = kRemoteBase + had,
                                     .remote_key = kRemoteKey,
                                     .message_bytes = bytes - had},
                                    {}));
    return frame;
  }
};

INSTANTIATE_TEST_SUITE_P(All, ReadFrames, testing::Values(4, 6));

TEST_P(ReadFrames, RequestsEqualScapys) {
  for (const std::size_t bytes : {0, 1000}) {
    ReadPair pair(reading_config(GetParam()));
    Bytes target(bytes);
    ASSERT_EQ(pair.a.post(read_into(target)), PostResult::posted);
    EXPECT_EQ(drain(pair.a), vectors(bytes == 0 ? "read_empty" : "read"));
  }
}

TEST_P(ReadFrames, RequestsForTheRestEqualScapys) {
  for (const std::uint32_t psn : {0x100U, 0xfffffeU}) {
    QueuePairConfig config = reading_config(GetParam());
    config.send_psn = psn;
    ReadPair pair(config);
    Bytes target(1000);
    pair.a.post(read_into(target));
    const std::vector<Bytes> answers = pair.answers();
    Pair::give(pair.a, answers[0]);
    Pair::give(pair.a, answers[1]);
    const TimePoint later = kStart + milliseconds(1);
    pair.a.expire(later);
    EXPECT_EQ(drain(pair.a, later), vectors(psn == 0x100 ? "read_rest" : "read_wrap"));
  }
}

struct AnswerRow {
  const char* scenario;
  std::uint32_t bytes;
  std::uint32_t psn = 0x200;
};

TEST_P(ReadFrames, ResponsesEqualScapys) {
  for (const AnswerRow& row :
       {AnswerRow{"responses", 1001}, AnswerRow{"responses_only", 40},
        AnswerRow{"responses_empty", 0}, AnswerRow{"responses_wrap", 770, 0xfffffe}}) {
    QueuePairConfig config = reading_config(GetParam());
    config.receive_psn = row.psn;
    Bytes memory = pattern(4096);
    MemoryTable table;
    table.add(kRemoteKey, kRemoteBase, memory, Access::read);
    QueuePair queue_pair(config, table);
    Pair::give(queue_pair, request(row.psn, 0, row.bytes));
    EXPECT_EQ(drain(queue_pair), vectors(row.scenario)) << row.scenario;
    Pair::give(queue_pair, request(row.psn, 0, row.bytes));
    EXPECT_EQ(drain(queue_pair), vectors(row.scenario)) << row.scenario << ", repeated";
  }
}

TEST_P(ReadFrames, ResponsesToARepeatOfTheRestEqualScapys) {
  Bytes memory = pattern(4096);
  MemoryTable table;
  table.add(kRemoteKey, kRemoteBase, memory, Access::read);
  QueuePair queue_pair(reading_config(GetParam()), table);
  Pair::give(queue_pair, request(0x200, 0, 1001));
  drain(queue_pair);
  Pair::give(queue_pair, request(0x200, 512, 1001));
  EXPECT_EQ(drain(queue_pair), vectors("responses_rest"));
  Pair::give(queue_pair, request(0x200, 768, 1001));
  EXPECT_EQ(drain(queue_pair), vectors("responses_end"));
  Pair::give(queue_pair, request(0x200, 512, 1001));
  EXPECT_EQ(drain(queue_pair), vectors("responses_rest")) << "from a lower PSN than before";
}

TEST_P(ReadFrames, ARegionRemovedWhileItIsReadIsRefusedFromThereOn) {
  Bytes memory = pattern(4096);
  MemoryTable table;
  table.add(kRemoteKey, kRemoteBase, memory, Access::read);
  QueuePair queue_pair(reading_config(GetParam()), table);
  Pair::give(queue_pair, request(0x200, 0, 1001));
  Bytes buffer(queue_pair.max_frame_bytes());
  queue_pair.transmit(buffer, kStart);
  queue_pair.transmit(buffer, kStart);
  table.remove(kRemoteKey);
  EXPECT_EQ(queue_pair.transmit(std::span(buffer).first(10), kStart), 0U) << "no room for the NAK";
  EXPECT_EQ(drain(queue_pair), vectors("nak_read_access"));
  EXPECT_EQ(queue_pair.failure(), Status::local_protection);
}

// --- both sides ---------------------------------------------------------------------------------

TEST(Read, BringsWhatIsThere) {
  for (const std::size_t bytes : {0U, 1U, 255U, 256U, 257U, 512U, 5000U}) {
    ReadPair pair;
    Bytes target(bytes + 2, 0xee);
    pair.a.post(read_into(std::span(target).subspan(1, bytes), 77));
    pair.settle();
    const std::vector<Completion> done = poll_all(pair.a);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, Status::success);
    EXPECT_EQ(done[0].kind, CompletionKind::read);
    EXPECT_EQ(done[0].bytes, bytes);
    EXPECT_EQ(Bytes(target.begin() + 1, target.end() - 1), pair.memory_at(77, bytes)) << bytes;
    EXPECT_TRUE(target.front() == 0xee && target.back() == 0xee) << bytes;
    EXPECT_FALSE(pair.a.next_deadline()) << "nothing is under way";
    EXPECT_FALSE(pair.b.poll()) << "the peer is not told";
  }
}

TEST(Read, TakesAsManyPsnsAsItsDataHasPackets) {
  for (const auto& [bytes, packets] : {std::pair(0U, 1U), {1U, 1U}, {256U, 1U}, {257U, 2U}}) {
    ReadPair pair;
    Bytes target(bytes);
    const Bytes data = pattern(1);
    pair.a.post(read_into(target));
    pair.a.post(request_of(SendKind::write, data));
    EXPECT_EQ(psns_of(drain(pair.a)), (std::vector<std::uint32_t>{0x100, 0x100 + packets}));
  }
}

TEST(Read, SeesWritesBeforeIt) {
  ReadPair pair;
  const Bytes data(700, 0x55);
  Bytes target(700);
  pair.a.post(request_of(SendKind::write, data));
  pair.a.post(read_into(target));
  pair.settle();
  EXPECT_EQ(statuses_of(pair.a), std::vector(2, Status::success));
  EXPECT_EQ(target, data);
}

} // namespace
} // namespace weir::endpoint::endpoint_read_test
