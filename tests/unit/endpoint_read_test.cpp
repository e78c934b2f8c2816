// SPDX-License-Identifier: BSD-3-Clause

/// RDMA READ: what the requester asks for and takes, and what the responder answers.

#include "endpoint/read_answers.hpp"
#include "endpoint_support.hpp"
#include "support/captured_frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace weir::endpoint::endpoint_read_test {
namespace {

using wire::Opcode;

constexpr std::uint8_t kSequenceError = wire::nak_syndrome(wire::NakCode::sequence_error);

std::string opcodes_of(const std::vector<Bytes>& frames) {
  std::string names;
  for (const Bytes& frame : frames) {
    const auto opcode = static_cast<Opcode>(bth_of(frame).opcode);
    names += opcode == Opcode::read_request           ? 'R'
             : opcode == Opcode::read_response_first  ? 'F'
             : opcode == Opcode::read_response_middle ? 'M'
             : opcode == Opcode::read_response_last   ? 'L'
             : opcode == Opcode::read_response_only   ? 'O'
             : opcode == Opcode::acknowledge          ? 'a'
                                                      : 'w';
  }
  return names;
}

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

/// A queue pair alone, whose peer may read the pattern.
struct Answerer {
  explicit Answerer(const QueuePairConfig& config) : queue_pair(config, table) {
    table.add(kRemoteKey, kRemoteBase, memory, Access::read);
  }

  Bytes memory = pattern(4096);
  MemoryTable table;
  QueuePair queue_pair;
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
    Answerer answerer(config);
    QueuePair& queue_pair = answerer.queue_pair;
    Pair::give(queue_pair, request(row.psn, 0, row.bytes));
    EXPECT_EQ(drain(queue_pair), vectors(row.scenario)) << row.scenario;
    Pair::give(queue_pair, request(row.psn, 0, row.bytes));
    EXPECT_EQ(drain(queue_pair), vectors(row.scenario)) << row.scenario << ", repeated";
  }
}

TEST_P(ReadFrames, ResponsesToARepeatOfTheRestEqualScapys) {
  Answerer answerer(reading_config(GetParam()));
  QueuePair& queue_pair = answerer.queue_pair;
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
  Answerer answerer(reading_config(GetParam()));
  QueuePair& queue_pair = answerer.queue_pair;
  Pair::give(queue_pair, request(0x200, 0, 1001));
  Bytes buffer(queue_pair.max_frame_bytes());
  queue_pair.transmit(buffer, kStart);
  queue_pair.transmit(buffer, kStart);
  answerer.table.remove(kRemoteKey);
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

// --- requester ----------------------------------------------------------------------------------

TEST(ReadRequester, PostsNoneWhereNoneAreAllowedAndNoneThatAreTooLong) {
  ReadPair without(local_config());
  Bytes target(1);
  EXPECT_EQ(without.a.post(read_into(target)), PostResult::no_reads);
  ReadPair pair; // of path MTU 256
  const std::size_t most = std::size_t{256} << 22;
  EXPECT_EQ(pair.a.post(read_into({target.data(), most + 1})), PostResult::too_long);
  EXPECT_EQ(pair.a.post(read_into({target.data(), most})), PostResult::posted);
}

TEST(ReadRequester, LeavesNoMoreUnansweredThanMaxRdAtomic) {
  ReadPair pair;
  std::vector<Bytes> targets(5, Bytes(300));
  for (Bytes& target : targets) {
    pair.a.post(read_into(target));
  }
  const Bytes data = pattern(1);
  pair.a.post(request_of(SendKind::write, data));
  std::vector<Bytes> requests = drain(pair.a);
  EXPECT_EQ(psns_of(requests), (std::vector<std::uint32_t>{0x100, 0x102}));
  give_all(pair.b, requests);
  const std::vector<Bytes> answers = drain(pair.b);
  Pair::give(pair.a, answers[0]);
  EXPECT_TRUE(drain(pair.a).empty()) << "the first is half answered";
  Pair::give(pair.a, answers[1]);
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x104, 1));
  pair.a.expire(*pair.a.next_deadline());
  EXPECT_EQ(psns_of(drain(pair.a)), (std::vector<std::uint32_t>{0x102, 0x104}))
      << "nor when it goes back";
}

TEST(ReadRequester, AFenceWaitsForAllReadsBefore) {
  for (const Fence fence : {Fence::none, Fence::after_reads}) {
    ReadPair pair;
    std::vector<Bytes> targets(2, Bytes(10));
    for (Bytes& target : targets) {
      pair.a.post(read_into(target));
    }
    const Bytes data(10, 0x55);
    SendRequest write = request_of(SendKind::write, data);
    write.fence = fence;
    pair.a.post(write);
    const std::vector<Bytes> requests = drain(pair.a);
    EXPECT_EQ(opcodes_of(requests), fence == Fence::none ? "RRw" : "RR");
    give_all(pair.b, requests);
    const std::vector<Bytes> answers = drain(pair.b);
    Pair::give(pair.a, answers[0]);
    EXPECT_EQ(drain(pair.a).size(), 0U);
    Pair::give(pair.a, answers[1]);
    EXPECT_EQ(opcodes_of(drain(pair.a)), fence == Fence::none ? "" : "w");
    EXPECT_EQ(targets[1] == data, fence == Fence::none) << "the write was there before the answer";
  }
}

TEST(ReadRequester, AnAckAboveDoesNotStandForTheData) {
  ReadPair pair;
  Bytes target(300);
  const Bytes data(10, 0x55);
  pair.a.post(read_into(target, 4096));
  pair.a.post(request_of(SendKind::write, data));
  const std::vector<Bytes> requests = drain(pair.a);
  give_all(pair.b, requests);
  const std::vector<Bytes> answers = drain(pair.b);
  ASSERT_EQ(opcodes_of(answers), "FLa");
  Pair::give(pair.a, answers[2]); // the responses are lost
  EXPECT_TRUE(poll_all(pair.a).empty());
  EXPECT_EQ(pair.a.statistics().missing_responses, 1U);
  EXPECT_EQ(opcodes_of(drain(pair.a)), "Rw") << "asked for again at once";
  give_all(pair.b, requests);
  give_all(pair.a, drain(pair.b));
  EXPECT_EQ(statuses_of(pair.a), std::vector(2, Status::success));
  EXPECT_EQ(target, pair.memory_at(4096, 300));
}

TEST(ReadRequester, NorDoesAnAckOrANakInsideOrAboveIt) {
  struct Row {
    std::uint32_t psn;
    std::uint8_t syndrome;
  };

  for (const Row& row : {Row{0x100, wire::kAckUnlimited}, Row{0x101, wire::kAckUnlimited},
                         Row{0x101, kSequenceError}, Row{0x102, kSequenceError},
                         Row{0x102, wire::rnr_syndrome(1)}}) {
    ReadPair pair;
    Bytes target(300);
    const Bytes data = pattern(1);
    pair.a.post(read_into(target));
    pair.a.post(request_of(SendKind::write, data));
    drain(pair.a);
    Pair::give(pair.a, acknowledgement(pair, row.psn, row.syndrome));
    EXPECT_TRUE(poll_all(pair.a).empty()) << row.psn;
    pair.a.expire(kStart + microseconds(10)); // an RNR wait is over
    EXPECT_EQ(psns_of(drain(pair.a)), (std::vector<std::uint32_t>{0x100, 0x102})) << row.psn;
  }
}

TEST(ReadRequester, AnAckBelowCompletesWhatIsBelow) {
  ReadPair pair;
  Bytes target(300);
  const Bytes data = pattern(1);
  pair.a.post(request_of(SendKind::write, data));
  pair.a.post(read_into(target));
  pair.a.post(request_of(SendKind::write, data));
  drain(pair.a);
  Pair::give(pair.a, acknowledgement(pair, 0x103));
  EXPECT_EQ(statuses_of(pair.a).size(), 1U) << "the first write";
  EXPECT_EQ(psns_of(drain(pair.a)), (std::vector<std::uint32_t>{0x101, 0x103}));
}

TEST(ReadRequester, AResponseCompletesWhatIsBelow) {
  ReadPair pair;
  Bytes target(10);
  const Bytes data = pattern(10);
  pair.a.post(request_of(SendKind::write, data));
  pair.a.post(read_into(target, 100));
  const std::vector<Bytes> answers = pair.answers();
  EXPECT_EQ(opcodes_of(answers), "O") << "it acknowledges the write too";
  Pair::give(pair.a, answers[0]);
  EXPECT_EQ(statuses_of(pair.a), std::vector(2, Status::success));
}

TEST(ReadRequester, AGapIsAskedForOnce) {
  ReadPair pair;
  std::vector<Bytes> targets(2, Bytes(1280));
  for (Bytes& target : targets) {
    pair.a.post(read_into(target));
  }
  const std::vector<Bytes> answers = pair.answers();
  ASSERT_EQ(opcodes_of(answers), "FMMMLFMMML");
  Pair::give(pair.a, answers[0]);
  for (std::size_t i = 2; i < answers.size(); ++i) { // the second is lost
    Pair::give(pair.a, answers[i]);
    EXPECT_EQ(opcodes_of(drain(pair.a)), i == 2 ? "RR" : "") << i;
  }
  EXPECT_EQ(pair.a.statistics().missing_responses, 1U);
  EXPECT_EQ(pair.a.state(), QueuePair::State::ready);
  Pair::give(pair.a, answers[1]); // it was late
  Pair::give(pair.a, answers[3]);
  EXPECT_EQ(psns_of(drain(pair.a)), (std::vector<std::uint32_t>{0x102, 0x105}))
      << "another gap, asked for from there on";
}

TEST(ReadRequester, AResponseThatHasComeIsNotTakenAgain) {
  ReadPair pair;
  Bytes target(600);
  pair.a.post(read_into(target));
  const std::vector<Bytes> answers = pair.answers();
  Pair::give(pair.a, answers[0]);
  std::fill(target.begin(), target.end(), 0xee);
  Pair::give(pair.a, answers[0]);
  EXPECT_EQ(target, Bytes(600, 0xee));
  EXPECT_EQ(pair.a.statistics().stale_acks, 1U);
  Pair::give(pair.a, answers[1]);
  Pair::give(pair.a, answers[2]);
  EXPECT_EQ(statuses_of(pair.a), std::vector{Status::success});
  std::fill(target.begin(), target.end(), 0xee);
  give_all(pair.a, answers);
  EXPECT_EQ(target, Bytes(600, 0xee)) << "the memory is the owner's again";
}

TEST(ReadRequester, ItsTimerRunsFromTheLastResponse) {
  ReadPair pair;
  Bytes target(600);
  pair.a.post(read_into(target));
  const std::vector<Bytes> answers = pair.answers();
  EXPECT_EQ(pair.a.next_deadline(), kStart + milliseconds(1));
  Pair::give(pair.a, answers[0], kStart + microseconds(400));
  EXPECT_EQ(pair.a.next_deadline(), kStart + microseconds(1400));
}

TEST(ReadRequester, ASilentPeerCostsAllRetries) {
  ReadPair pair;
  Bytes target(600);
  pair.a.post(read_into(target));
  drain(pair.a);
  while (const auto deadline = pair.a.next_deadline()) {
    pair.a.expire(*deadline);
    drain(pair.a, *deadline);
  }
  EXPECT_EQ(statuses_of(pair.a), std::vector{Status::retry_exceeded});
  EXPECT_EQ(pair.a.statistics().timeouts, 8U);
}

/// Responses of a READ of three packets, 0x100 to 0x102, or what they name.
TEST(ReadRequester, ResponsesThatDoNotFitAreFatal) {
  struct Row {
    const char* what;
    Opcode opcode;
    std::uint32_t psn;
    std::size_t bytes;
  };

  for (const Row& row : {Row{"too short", Opcode::read_response_first, 0x101, 255},
                         Row{"too long", Opcode::read_response_first, 0x101, 257},
                         Row{"too early an end", Opcode::read_response_only, 0x101, 256},
                         Row{"an answer to a write", Opcode::read_response_only, 0x100, 1}}) {
    ReadPair pair;
    Bytes target(600, 0xee);
    const Bytes data = pattern(256);
    pair.a.post(request_of(SendKind::write, data));
    pair.a.post(read_into(target));
    drain(pair.a);
    QueuePairConfig config = pair.b.config();
    config.path_mtu = 512;
    PacketWriter writer(config);
    Bytes frame(writer.max_frame_bytes());
    const Bytes payload = pattern(row.bytes);
    frame.resize(writer.write_read_response(frame, {row.opcode, row.psn, 1}, {payload, {}}));
    Pair::give(pair.a, frame);
    EXPECT_EQ(pair.a.failure(), Status::bad_response) << row.what;
    EXPECT_EQ(target, Bytes(600, 0xee)) << row.what;
  }
}

/// Less than an AETH behind the BTH, or pad in its place.
TEST(ReadRequester, ResponsesThatAreTooShortForTheirHeadersAreDropped) {
  for (const std::size_t bytes : {0U, 1U, 3U}) {
    ReadPair pair;
    Bytes target(10);
    pair.a.post(read_into(target));
    drain(pair.a);
    const Bytes payload(bytes);
    PacketWriter writer(pair.b.config());
    Bytes frame(writer.max_frame_bytes());
    frame.resize(writer.write_request(frame, {.opcode = Opcode::read_response_only, .psn = 0x100},
                                      {payload, {}}));
    Pair::give(pair.a, frame);
    EXPECT_EQ(pair.a.statistics().malformed, 1U) << bytes;
    EXPECT_EQ(pair.a.state(), QueuePair::State::ready) << bytes;
  }
}

TEST(ReadRequester, ARefusalEndsIt) {
  ReadPair pair;
  Bytes target(600);
  SendRequest read = read_into(target);
  read.remote_key ^= 1;
  pair.a.post(read);
  pair.a.post(read_into(target));
  pair.settle();
  EXPECT_EQ(statuses_of(pair.a), (std::vector{Status::remote_access, Status::flushed}));
}

// --- responder ----------------------------------------------------------------------------------

TEST(ReadResponder, ReadsOnlyWhereItMay) {
  struct Row {
    const char* what;
    std::uint64_t address;
    std::size_t bytes;
    std::uint32_t key = kRemoteKey;
    bool allowed = false;
  };

  const std::uint64_t end = kRemoteBase + 65536;
  for (const Row& row :
       {Row{"last byte", end - 1, 1, kRemoteKey, true}, Row{"one byte past", end - 256, 257},
        Row{"before", kRemoteBase - 1, 2}, Row{"address wraps", ~std::uint64_t{0}, 2},
        Row{"unknown key", kRemoteBase, 1, kRemoteKey + 1},
        Row{"for writes alone", kRemoteBase, 1, 77},
        Row{"nothing, anywhere, any key", 0, 0, 0, true}}) { // IBTA C9-88
    ReadPair pair;
    Bytes inbox(10);
    pair.table.add(77, kRemoteBase, inbox);
    Bytes target(row.bytes);
    SendRequest read = read_into(target);
    read.remote_address = row.address;
    read.remote_key = row.key;
    pair.a.post(read);
    const std::vector<Bytes> answers = pair.answers();
    ASSERT_EQ(answers.size(), 1U) << row.what;
    EXPECT_EQ(opcodes_of(answers), row.allowed ? "O" : "a") << row.what;
    EXPECT_EQ(aeth_of(answers[0]).syndrome, row.allowed ? wire::kAckUnlimited : 0x62) << row.what;
    EXPECT_EQ(psn_of(answers[0]), 0x100U) << row.what;
  }
}

TEST(ReadResponder, NobodyWritesWhatIsForReadingAlone) {
  ReadPair pair;
  Bytes page(10);
  pair.table.add(77, kRemoteBase, page, Access::read);
  const Bytes data = pattern(10);
  SendRequest write = request_of(SendKind::write, data);
  write.remote_key = 77;
  pair.a.post(write);
  pair.settle();
  EXPECT_EQ(statuses_of(pair.a), std::vector{Status::remote_access});
  EXPECT_EQ(page, Bytes(10));
}

Bytes read_request(const Pair& pair, std::uint32_t psn, std::uint64_t offset, std::uint32_t bytes,
                   std::uint32_t key = kRemoteKey) {
  PacketWriter writer(pair.a.config());
  Bytes frame(writer.max_frame_bytes());
  frame.resize(writer.write_request(frame,
                                    {.opcode = Opcode::read_request,
                                     .ack_request = AckRequest::yes,
                                     .psn = psn,
                                     .remote_address = kRemoteBase + offset,
                                     .remote_key = key,
                                     .message_bytes = bytes},
                                    {}));
  return frame;
}

void expect_invalid_request(ReadPair& pair, std::uint32_t psn) {
  EXPECT_EQ(pair.b.failure(), Status::local_invalid_request);
  const std::vector<Bytes> answers = drain(pair.b);
  ASSERT_FALSE(answers.empty());
  EXPECT_EQ(aeth_of(answers.back()).syndrome, 0x61);
  EXPECT_EQ(psn_of(answers.back()), psn);
}

TEST(ReadResponder, RefusesMoreAtOnceThanItRemembers) {
  for (const std::uint32_t most : {0U, 1U, 3U}) {
    QueuePairConfig config = reading_config();
    config.max_dest_rd_atomic = most;
    ReadPair pair(config);
    for (std::uint32_t i = 0; i < most; ++i) {
      Pair::give(pair.b, read_request(pair, 0x100 + i, 0, 10));
    }
    EXPECT_EQ(pair.b.state(), QueuePair::State::ready);
    Pair::give(pair.b, read_request(pair, 0x100 + most, 0, 10));
    EXPECT_EQ(pair.b.failure(), Status::local_invalid_request);
    EXPECT_EQ(opcodes_of(drain(pair.b)), std::string(most, 'O') + 'a') << "in the order of PSNs";
  }
}

TEST(ReadResponder, RefusesWhatMakesNoSense) {
  ReadPair inside;
  const Bytes data = pattern(600);
  inside.a.post(request_of(SendKind::write, data));
  Pair::give(inside.b, drain(inside.a)[0]);
  Pair::give(inside.b, read_request(inside, 0x101, 0, 10));
  expect_invalid_request(inside, 0x101);
  ReadPair long_one;
  Pair::give(long_one.b, read_request(long_one, 0x100, 0, 0x80000001));
  expect_invalid_request(long_one, 0x100);
  ReadPair with_payload;
  PacketWriter writer(with_payload.a.config());
  Bytes frame(writer.max_frame_bytes());
  frame.resize(writer.write_request(frame, {.opcode = Opcode::read_request, .psn = 0x100},
                                    {std::span(data).first(4), {}}));
  Pair::give(with_payload.b, frame);
  expect_invalid_request(with_payload, 0x100);
}

TEST(ReadResponder, ARepeatReadsAgain) {
  ReadPair pair;
  Pair::give(pair.b, read_request(pair, 0x100, 0, 600));
  const std::vector<Bytes> first = drain(pair.b);
  pair.memory[300] ^= 0xff;
  Pair::give(pair.b, read_request(pair, 0x100, 0, 600));
  const std::vector<Bytes> again = drain(pair.b);
  ASSERT_EQ(psns_of(again), psns(0x100, 3));
  EXPECT_EQ(again[0], first[0]);
  EXPECT_NE(again[1], first[1]);
  EXPECT_EQ(again[2], first[2]);
  EXPECT_EQ(pair.b.statistics().messages_received, 1U);
  EXPECT_EQ(pair.b.expected_psn(), 0x103U);
}

TEST(ReadResponder, ARepeatMayAskForAPart) {
  ReadPair pair;
  Pair::give(pair.b, read_request(pair, 0x100, 0, 1280));
  drain(pair.b);
  Pair::give(pair.b, read_request(pair, 0x101, 256, 512));
  const std::vector<Bytes> again = drain(pair.b);
  EXPECT_EQ(psns_of(again), psns(0x101, 2));
  EXPECT_EQ(opcodes_of(again), "FL");
}

TEST(ReadResponder, DropsRepeatsOfNothingItRemembers) {
  struct Row {
    const char* what;
    std::uint32_t psn;
    std::uint64_t offset;
    std::uint32_t bytes;
    std::uint32_t key = kRemoteKey;
  };

  for (const Row& row :
       {Row{"forgotten", 0x100, 0, 600}, Row{"before all", 0x0ff, 0, 600},
        Row{"a write", 0x106, 0, 600}, Row{"another address", 0x103, 1, 600},
        Row{"the address of its start", 0x104, 0, 300}, Row{"too long", 0x104, 256, 345},
        Row{"another key", 0x103, 0, 600, kRemoteKey + 1}}) {
    ReadPair pair;
    Pair::give(pair.b, read_request(pair, 0x100, 0, 600));
    drain(pair.b);
    Pair::give(pair.b, read_request(pair, 0x103, 0, 600));
    const Bytes data = pattern(1);
    PacketWriter writer(pair.a.config());
    Bytes write(writer.max_frame_bytes());
    write.resize(writer.write_request(write,
                                      {.opcode = Opcode::write_only,
                                       .psn = 0x106,
                                       .remote_address = kRemoteBase + 8192,
                                       .remote_key = kRemoteKey,
                                       .message_bytes = 1},
                                      {data, {}}));
    Pair::give(pair.b, write);
    Pair::give(pair.b, read_request(pair, 0x107, 0, 600));
    drain(pair.b);
    Pair::give(pair.b, read_request(pair, row.psn, row.offset, row.bytes, row.key));
    EXPECT_TRUE(drain(pair.b).empty()) << row.what;
    EXPECT_EQ(pair.b.statistics().forgotten_reads, 1U) << row.what;
    EXPECT_EQ(pair.b.state(), QueuePair::State::ready) << row.what;
    Pair::give(pair.b, read_request(pair, 0x104, 256, 344));
    EXPECT_EQ(psns_of(drain(pair.b)), psns(0x104, 2)) << row.what << ": the two last are there";
  }
}

/// A late copy of a request is no reason to refuse the next READ, nor to keep the old one.
TEST(ReadResponder, ARepeatOfTheOldestDoesNotBarTheNext) {
  QueuePairConfig config = reading_config();
  config.max_dest_rd_atomic = 1;
  ReadPair pair(config);
  Pair::give(pair.b, read_request(pair, 0x100, 0, 600));
  drain(pair.b);
  Pair::give(pair.b, read_request(pair, 0x100, 0, 600));
  Pair::give(pair.b, read_request(pair, 0x103, 0, 600));
  EXPECT_EQ(psns_of(drain(pair.b)), psns(0x103, 3));
}

TEST(ReadResponder, AnswersInTheOrderOfPsns) {
  ReadPair pair;
  Bytes target(600);
  const Bytes data = pattern(1);
  pair.a.post(read_into(target));
  pair.a.post(request_of(SendKind::write, data));
  pair.a.post(read_into(target));
  pair.a.post(request_of(SendKind::write, data));
  give_all(pair.b, drain(pair.a));
  EXPECT_EQ(psns_of(drain(pair.b)),
            (std::vector<std::uint32_t>{0x100, 0x101, 0x102, 0x104, 0x105, 0x106, 0x107}));
  Pair::give(pair.b, read_request(pair, 0x104, 0, 600));
  Pair::give(pair.b, read_request(pair, 0x101, 256, 344));
  EXPECT_EQ(psns_of(drain(pair.b)), (std::vector<std::uint32_t>{0x101, 0x102, 0x104, 0x105, 0x106}))
      << "repeats too";
}

TEST(ReadResponder, ANakWaitsForTheAnswersBelow) {
  ReadPair pair;
  Bytes target(600);
  const Bytes data = pattern(300);
  pair.a.post(read_into(target));
  pair.a.post(request_of(SendKind::write, data));
  const std::vector<Bytes> requests = drain(pair.a);
  Pair::give(pair.b, requests[0]);
  Pair::give(pair.b, requests[2]); // the write's first packet is lost
  const std::vector<Bytes> answers = drain(pair.b);
  EXPECT_EQ(opcodes_of(answers), "FMLa");
  EXPECT_EQ(aeth_of(answers[3]).syndrome, kSequenceError);
  EXPECT_EQ(psn_of(answers[3]), 0x103U);
}

TEST(ReadResponder, AReadThatClosesAGapWithdrawsTheNak) {
  ReadPair pair;
  const Bytes data = pattern(300);
  pair.a.post(request_of(SendKind::write, data));
  Pair::give(pair.b, drain(pair.a)[1]);
  Pair::give(pair.b, read_request(pair, 0x100, 0, 10));
  EXPECT_EQ(opcodes_of(drain(pair.b)), "O");
  Pair::give(pair.b, read_request(pair, 0x105, 0, 10));
  EXPECT_EQ(psns_of(drain(pair.b)), psns(0x101, 1)) << "another gap, another NAK";
}

/// An ACK of a READ's PSN would say that its data has arrived, which soft-RoCE believes.
TEST(ReadResponder, AnAckNamesAWriteAndNoRead) {
  ReadPair pair;
  Bytes target(600);
  const Bytes data = pattern(1);
  pair.a.post(request_of(SendKind::write, data));
  pair.a.post(read_into(target));
  const std::vector<Bytes> requests = drain(pair.a);
  give_all(pair.b, requests);
  drain(pair.b);
  Pair::give(pair.b, requests[1]);
  drain(pair.b);
  Pair::give(pair.b, requests[0]);
  const std::vector<Bytes> answers = drain(pair.b);
  ASSERT_EQ(opcodes_of(answers), "a");
  EXPECT_EQ(psn_of(answers[0]), 0x100U);
  EXPECT_EQ(aeth_of(answers[0]).message_sequence.get(), 2U);
}

/// Four READs of a gibibyte in packets of 256 bytes take all PSNs.
TEST(ReadResponder, ARepeatIsOfTheNewestReadWithItsPsn) {
  QueuePairConfig config = reading_config();
  config.max_dest_rd_atomic = 5;
  ReadAnswers answers(config);
  constexpr std::uint32_t gibibyte = 1U << 30;
  for (std::uint32_t i = 0; i < 5; ++i) {
    answers.accept({.psn = (i << 22) & wire::kPsnMask, .address = i, .bytes = gibibyte}, i);
  }
  answers.clear();
  EXPECT_TRUE(answers.repeat({.psn = 1, .address = 4 + 256, .bytes = 1}));
  EXPECT_EQ(answers.next()->header.message_sequence, 4U);
}

TEST(ReadResponder, ACloseSilencesIt) {
  ReadPair pair;
  Pair::give(pair.b, read_request(pair, 0x100, 0, 600));
  pair.b.close();
  EXPECT_TRUE(drain(pair.b).empty());
}

/// What was asked for before a wrong request is still sent, but not when the owner takes its memory
/// back.
TEST(ReadResponder, ACloseAfterAWrongRequestLeavesTheNakAlone) {
  ReadPair pair;
  Pair::give(pair.b, read_request(pair, 0x100, 0, 600));
  Pair::give(pair.b, read_request(pair, 0x103, 0, 0x80000001));
  pair.b.close();
  EXPECT_EQ(opcodes_of(drain(pair.b)), "a");
}

/// A peer that reads without end leaves every second frame to our own requests.
TEST(ReadResponder, AnswersTakeTurnsWithRequests) {
  ReadPair pair;
  const Bytes data = pattern(600);
  pair.b.post(request_of(SendKind::write, data));
  Pair::give(pair.b, read_request(pair, 0x100, 0, 1200));
  EXPECT_EQ(opcodes_of(drain(pair.b)), "FwMwMwML");
}

// --- frames of Linux soft-RoCE ------------------------------------------------------------------

/// A connection of roce-mix.pcap in which the host `requester` sends READs to `responder`.
struct CaptureRow {
  const char* what;
  std::uint64_t queue_pair; // at both ends
  std::uint64_t requester;
  std::uint64_t responder;
  std::size_t replies; // counted by another program
};

void PrintTo(const CaptureRow& row, std::ostream* out) {
  *out << row.what;
}

constexpr std::uint8_t kReadRequest = 0x0c;
constexpr std::uint8_t kWriteOnly = 0x0a;
constexpr std::size_t kMtu = 1024;

class SoftRoceReads : public testing::TestWithParam<CaptureRow> {
 protected:
  SoftRoceReads() {
    for (Bytes& frame : test::captured_frames("roce-mix.pcap")) {
      if (frame.size() < 62 || number_at(frame, 36, 2) != wire::kRocePort ||
          number_at(frame, offset::destination_qp, 3) != GetParam().queue_pair) {
        continue;
      }
      const std::uint64_t source = number_at(frame, offset::source, 4) & 0xff;
      const bool is_request = frame[offset::opcode] <= kReadRequest;
      if (source == GetParam().requester && is_request) {
        requests_.push_back(std::move(frame));
      } else if (source == GetParam().responder && !is_request) {
        replies_.push_back(std::move(frame));
      }
    }
  }

  /// The responder's end.
  QueuePairConfig responder() const {
    QueuePairConfig config;
    const Bytes& reply = replies_.front();
    std::copy_n(reply.begin(), 6, config.remote_mac.bytes.begin());
    std::copy_n(reply.begin() + 6, 6, config.local_mac.bytes.begin());
    config.local_ip = wire::IpAddress::from_v4(reply.data() + offset::source);
    config.remote_ip = wire::IpAddress::from_v4(reply.data() + offset::destination);
    config.udp_source_port =
        static_cast<std::uint16_t>(number_at(reply, offset::udp_source_port, 2));
    config.local_qp = config.remote_qp = static_cast<std::uint32_t>(GetParam().queue_pair);
    config.receive_psn = psn_of(requests_.front());
    config.path_mtu = kMtu;
    config.stack = Stack::soft_roce;
    config.max_rd_atomic = config.max_dest_rd_atomic = 8;
    return config;
  }

  static std::uint64_t address_in(const Bytes& request) {
    return number_at(request, offset::extension, 8);
  }

  static std::uint32_t key_in(const Bytes& request) {
    return static_cast<std::uint32_t>(number_at(request, offset::extension + 8, 4));
  }

  static std::size_t length_in(const Bytes& request) {
    return number_at(request, offset::extension + 12, 4);
  }

  /// What the real responder answered to a READ.
  Bytes data_of(const Bytes& request) const {
    Bytes data;
    for (const Bytes& reply : replies_) {
      const std::int32_t ahead = wire::psn_distance(psn_of(request), psn_of(reply));
      if (ahead < 0 || static_cast<std::size_t>(ahead) * kMtu >= length_in(request)) {
        continue;
      }
      const std::size_t aeth = reply[offset::opcode] == 0x0e ? 0 : 4;
      const std::size_t pad = reply[offset::opcode + 1] >> 4 & 3;
      data.insert(data.end(), reply.begin() + static_cast<std::ptrdiff_t>(offset::extension + aeth),
                  reply.end() - static_cast<std::ptrdiff_t>(4 + pad));
    }
    return data;
  }

  std::vector<Bytes> requests_;
  std::vector<Bytes> replies_;
};

TEST_P(SoftRoceReads, ResponderDoesWhatTheRealOneDid) {
  ASSERT_EQ(replies_.size(), GetParam().replies);
  MemoryTable table;
  QueuePair queue_pair(responder(), table);
  Bytes buffer(kMtu);
  for (int i = 0; i < 64; ++i) {
    queue_pair.post(ReceiveRequest{.id = 0, .buffer = buffer});
  }
  auto next = replies_.begin();
  for (const Bytes& request : requests_) {
    const bool is_read = request[offset::opcode] == kReadRequest;
    Bytes memory(is_read || request[offset::opcode] == kWriteOnly ? length_in(request) : 0);
    if (is_read) {
      memory = data_of(request);
    }
    const std::uint32_t key = memory.empty() ? 0 : key_in(request);
    table.add(key, memory.empty() ? 0 : address_in(request), memory, Access::read_and_write);
    Pair::give(queue_pair, request);
    for (const Bytes& ours : drain(queue_pair)) {
      ASSERT_NE(next, replies_.end());
      ASSERT_EQ(without_ip_id(ours), without_ip_id(*next++));
    }
    table.remove(key);
  }
  EXPECT_EQ(next, replies_.end());
  EXPECT_EQ(queue_pair.state(), QueuePair::State::ready);
}

/// Only the READs.
TEST_P(SoftRoceReads, RequesterSendsAndTakesWhatTheRealOneDid) {
  const MemoryTable memory;
  for (const Bytes& request : requests_) {
    if (request[offset::opcode] != kReadRequest) {
      continue;
    }
    QueuePairConfig config = mirrored(responder());
    config.send_psn = psn_of(request);
    QueuePair queue_pair(config, memory);
    Bytes target(length_in(request));
    SendRequest read = read_into(target);
    read.remote_address = address_in(request);
    read.remote_key = key_in(request);
    queue_pair.post(read);
    const std::vector<Bytes> ours = drain(queue_pair);
    ASSERT_EQ(ours.size(), 1U);
    EXPECT_EQ(without_ip_id(ours[0]), without_ip_id(request));
    give_all(queue_pair, replies_);
    EXPECT_EQ(statuses_of(queue_pair), std::vector{Status::success});
    EXPECT_EQ(target, data_of(request));
    EXPECT_EQ(queue_pair.statistics().bad_icrc, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SoftRoceReads,
                         testing::Values(CaptureRow{"five of 5000 bytes", 0x13, 2, 1, 25},
                                         CaptureRow{"rping", 0x15, 1, 2, 12}));

} // namespace
} // namespace weir::endpoint::endpoint_read_test
