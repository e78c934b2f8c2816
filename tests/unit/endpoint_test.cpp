// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/device.hpp"
#include "endpoint/memory.hpp"
#include "endpoint/queue_pair.hpp"
#include "endpoint_support.hpp"
#include "frame/frame.hpp"
#include "support/captured_frames.hpp"
#include "wire/headers.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"
#include "wire/psn.hpp"
#include "wire/syndrome.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

namespace weir::endpoint::endpoint_test {
namespace {

using wire::Opcode;

// --- PSN arithmetic -----------------------------------------------------------------------------

static_assert(wire::psn_add(0xffffff, 1) == 0);
static_assert(wire::psn_add(0, -1) == 0xffffff);
static_assert(wire::psn_add(5, std::int64_t{1} << 40) == 5);
static_assert(wire::psn_distance(0xfffffe, 1) == 3);
static_assert(wire::psn_distance(1, 0xfffffe) == -3);
static_assert(wire::psn_distance(7, 7) == 0);
static_assert(wire::psn_distance(0, 0x7fffff) == 0x7fffff);
static_assert(wire::psn_distance(0, 0x800000) == -0x800000);
static_assert(wire::psn_before(0xffffff, 0) && !wire::psn_before(0, 0xffffff));
static_assert(!wire::psn_before(3, 3));

// --- syndromes and RNR timers (IBTA tables 44, 45) ----------------------------------------------

static_assert(wire::rnr_wait(0) == microseconds(655360) && wire::rnr_wait(1) == microseconds(10));
static_assert(wire::rnr_wait(14) == microseconds(1280) &&
              wire::rnr_wait(31) == microseconds(491520));
static_assert(wire::kind_of(0x1f) == wire::SyndromeKind::acknowledge &&
              wire::kind_of(0x2e) == wire::SyndromeKind::rnr);
static_assert(wire::kind_of(0x60) == wire::SyndromeKind::nak &&
              wire::kind_of(0x40) == wire::SyndromeKind::reserved);
static_assert(wire::kind_of(0xe0) == wire::SyndromeKind::reserved);

// --- frames against scapy's ---------------------------------------------------------------------

struct RequestRow {
  std::string scenario;
  SendKind kind;
  std::size_t bytes;
  std::uint32_t mtu;
  std::uint32_t psn = 0x000100;
  std::uint8_t traffic_class = 0;
};

void PrintTo(const RequestRow& row, std::ostream* out) {
  *out << row.scenario;
}

const std::vector<RequestRow> kRequestRows{
    {"write", SendKind::write, 1000, 256},
    {"write_immediate", SendKind::write_immediate, 770, 256},
    {"send", SendKind::send, 600, 256},
    {"send_immediate", SendKind::send_immediate, 513, 256},
    {"write_only", SendKind::write, 40, 1024},
    {"write_only_immediate", SendKind::write_immediate, 5, 1024},
    {"write_empty", SendKind::write, 0, 1024},
    {"send_only", SendKind::send, 1024, 1024},
    {"send_only_immediate", SendKind::send_immediate, 3, 1024},
    {"send_empty", SendKind::send, 0, 1024},
    {"psn_wrap", SendKind::write, 1024, 256, 0xfffffe},
    {"mtu_4096", SendKind::write, 8193, 4096},
    {"traffic_class", SendKind::send, 9, 1024, 0x000100, 0x6a},
};

class RequestFrames : public testing::TestWithParam<std::tuple<RequestRow, int>> {};

TEST_P(RequestFrames, EqualScapys) {
  const auto& [row, ip_version] = GetParam();
  QueuePairConfig config = local_config(ip_version);
  config.path_mtu = row.mtu;
  config.send_psn = row.psn;
  config.traffic_class = row.traffic_class;
  const std::vector<Bytes> expected =
      vectors_of(row.scenario + "_ipv" + std::to_string(ip_version));
  ASSERT_FALSE(expected.empty());
  const Bytes data = pattern(row.bytes);
  const std::span<const std::uint8_t> all = data;
  // However the message is cut into header and data, the frames are the same.
  for (const std::size_t cut : {std::size_t{0}, data.size() / 3, data.size() / 2, data.size()}) {
    const MemoryTable memory;
    QueuePair queue_pair(config, memory);
    SendRequest request = request_of(row.kind, all.subspan(cut));
    request.header = all.first(cut);
    ASSERT_EQ(queue_pair.post(request), PostResult::posted);
    EXPECT_EQ(drain(queue_pair), expected) << "cut at " << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RequestFrames,
                         testing::Combine(testing::ValuesIn(kRequestRows), testing::Values(4, 6)));

/// What makes B, at PSN 0x200, answer with the scenario's frame. A sends; B's replies are compared.
struct ReplyRow {
  std::string scenario;
  SendKind kind;
  std::function<void(RequestHeader&)> spoil;
  std::uint32_t psn = 0x000200;
  bool has_receive = true;
};

void PrintTo(const ReplyRow& row, std::ostream* out) {
  *out << row.scenario;
}

const std::vector<ReplyRow> kReplyRows{
    {"ack", SendKind::write, [](RequestHeader&) {}},
    {"ack_wrap", SendKind::write, [](RequestHeader&) {}, 0xffffff},
    {"nak_sequence", SendKind::write, [](RequestHeader& h) { h.psn += 1; }},
    {"nak_invalid_request", SendKind::write,
     [](RequestHeader& h) { h.opcode = Opcode::write_last; }},
    {"nak_remote_access", SendKind::write, [](RequestHeader& h) { h.remote_key ^= 1; }},
    {"rnr_nak", SendKind::send, [](RequestHeader& h) { h.opcode = Opcode::send_only; }, 0x000200,
     false},
};

class ReplyFrames : public testing::TestWithParam<std::tuple<ReplyRow, int>> {};

TEST_P(ReplyFrames, EqualScapys) {
  const auto& [row, ip_version] = GetParam();
  QueuePairConfig config = local_config(ip_version);
  config.receive_psn = row.psn;
  config.rnr_timer = 14;
  Bytes region(1024);
  MemoryTable memory;
  memory.add(kRemoteKey, kRemoteBase, region);
  QueuePair queue_pair(config, memory);
  if (row.has_receive) {
    queue_pair.post(ReceiveRequest{.id = 1, .buffer = {}});
  }
  RequestHeader header{.opcode = Opcode::write_only,
                       .ack_request = AckRequest::yes,
                       .psn = row.psn,
                       .remote_address = kRemoteBase,
                       .remote_key = kRemoteKey,
                       .message_bytes = 40,
                       .immediate = 0};
  row.spoil(header);
  const Bytes data = pattern(40);
  PacketWriter peer(mirrored(config));
  Bytes frame(peer.max_frame_bytes());
  frame.resize(peer.write_request(frame, header, {data, {}}));
  queue_pair.receive(frame, kStart);
  const std::vector<Bytes> expected =
      vectors_of(row.scenario + "_ipv" + std::to_string(ip_version));
  ASSERT_EQ(expected.size(), 1U);
  EXPECT_EQ(drain(queue_pair), expected);
}

INSTANTIATE_TEST_SUITE_P(All, ReplyFrames,
                         testing::Combine(testing::ValuesIn(kReplyRows), testing::Values(4, 6)));

// --- packets of our own making ------------------------------------------------------------------

/// Computes a new ICRC after a test's change to a frame.
void sign(Bytes& bytes) {
  frame::Frame frame;
  frame.data = bytes.data();
  frame.length = static_cast<std::uint32_t>(bytes.size());
  frame.packet = wire::parse(bytes);
  wire::store_icrc(frame, wire::compute_icrc(frame));
}

Bytes request_frame(const Pair& pair, const RequestHeader& header, std::size_t payload) {
  const Bytes data = pattern(payload);
  QueuePairConfig config = pair.a.config();
  config.path_mtu = 4096; // so that payloads may violate the rules
  PacketWriter writer(config);
  Bytes frame(writer.max_frame_bytes());
  frame.resize(writer.write_request(frame, header, {data, {}}));
  return frame;
}

// --- requester ----------------------------------------------------------------------------------

TEST(Requester, SendsNoMoreThanTheWindow) {
  QueuePairConfig config = local_config();
  config.window = 4;
  Pair pair(config);
  const Bytes data = pattern(10 * 256);
  pair.a.post(request_of(SendKind::write, data));
  const std::vector<Bytes> frames = drain(pair.a);
  EXPECT_EQ(psns_of(frames), psns(0x100, 4));
  EXPECT_EQ(bth_of(frames[3]).ack_request, 0x80) << "a closed window must ask for an ACK";
  Pair::give(pair.a, acknowledgement(pair, 0x101));
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x104, 2));
}

TEST(Requester, AsksForAcknowledgementEveryFewPacketsAndAtTheEnd) {
  QueuePairConfig config = local_config();
  config.ack_request_every = 3;
  Pair pair(config);
  const Bytes data = pattern(8 * 256);
  pair.a.post(request_of(SendKind::write, data));
  std::string asks;
  for (const Bytes& frame : drain(pair.a)) {
    asks += bth_of(frame).ack_request == 0x80 ? 'A' : '.';
  }
  EXPECT_EQ(asks, "..A..A.A");
}

TEST(Requester, CumulativeAckCompletesAllBefore) {
  Pair pair;
  const Bytes data = pattern(300);
  for (std::uint64_t id = 0; id < 3; ++id) {
    SendRequest request = request_of(SendKind::write, data);
    request.id = id;
    pair.a.post(request);
  }
  drain(pair.a);
  Pair::give(pair.a, acknowledgement(pair, 0x104)); // two packets each: the first of the third
  const std::vector<Completion> done = poll_all(pair.a);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].id, 0U);
  EXPECT_EQ(done[1].id, 1U);
  EXPECT_EQ(done[1].bytes, 300U);
  EXPECT_EQ(done[1].kind, CompletionKind::write);
}

TEST(Requester, GoesBackToTheNaksPsn) {
  Pair pair;
  const Bytes data = pattern(6 * 256);
  pair.a.post(request_of(SendKind::write, data));
  const std::vector<Bytes> first_time = drain(pair.a);
  Pair::give(pair.a,
             acknowledgement(pair, 0x102, wire::nak_syndrome(wire::NakCode::sequence_error)));
  std::vector<Bytes> again = drain(pair.a);
  ASSERT_EQ(psns_of(again), psns(0x102, 4));
  for (std::size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i], first_time[i + 2]) << "a repeat is the same packet";
  }
  EXPECT_EQ(pair.a.statistics().packets_retransmitted, 4U);
  EXPECT_EQ(pair.a.statistics().naks_received, 1U);
}

TEST(Requester, ARepeatedNakCostsNothing) {
  QueuePairConfig config = local_config();
  config.retry_count = 1;
  Pair pair(config);
  const Bytes data = pattern(4 * 256);
  pair.a.post(request_of(SendKind::write, data));
  drain(pair.a);
  const Bytes nak = acknowledgement(pair, 0x100, wire::nak_syndrome(wire::NakCode::sequence_error));
  for (int i = 0; i < 5; ++i) {
    Pair::give(pair.a, nak);
  }
  EXPECT_EQ(pair.a.state(), QueuePair::State::ready);
  EXPECT_EQ(pair.a.statistics().stale_acks, 4U);
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x100, 4));
}

TEST(Requester, AckThatOvertakesARetransmissionSkipsIt) {
  Pair pair;
  const Bytes data = pattern(6 * 256);
  pair.a.post(request_of(SendKind::write, data));
  drain(pair.a);
  pair.a.expire(*pair.a.next_deadline());
  Bytes buffer(pair.a.max_frame_bytes());
  ASSERT_NE(pair.a.transmit(buffer, kStart), 0U); // 0x100 once more
  Pair::give(pair.a, acknowledgement(pair, 0x103));
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x104, 2));
}

struct StaleRow {
  const char* what;
  std::uint32_t psn;
};

/// Six packets from 0xfffffe on in flight, the first acknowledged.
TEST(Requester, IgnoresAcksOutsideWhatIsInFlight) {
  for (const StaleRow& row : {StaleRow{"the one before", 0xfffffe}, StaleRow{"long past", 0xff0000},
                              StaleRow{"not sent yet", 0x000004}, StaleRow{"far ahead", 0x100000},
                              StaleRow{"half the circle away", 0x7fffff}}) {
    for (const std::uint8_t syndrome :
         {wire::kAckUnlimited, wire::nak_syndrome(wire::NakCode::sequence_error),
          wire::rnr_syndrome(3), wire::nak_syndrome(wire::NakCode::remote_access)}) {
      QueuePairConfig config = local_config();
      config.send_psn = 0xfffffe;
      Pair pair(config);
      const Bytes data = pattern(6 * 256);
      pair.a.post(request_of(SendKind::write, data));
      drain(pair.a);
      Pair::give(pair.a, acknowledgement(pair, 0xfffffe));
      const auto deadline = pair.a.next_deadline();
      Pair::give(pair.a, acknowledgement(pair, row.psn, syndrome));
      EXPECT_EQ(pair.a.statistics().stale_acks, 1U) << row.what;
      EXPECT_EQ(pair.a.state(), QueuePair::State::ready) << row.what;
      EXPECT_EQ(pair.a.next_deadline(), deadline) << row.what;
      EXPECT_TRUE(drain(pair.a).empty()) << row.what;
      Pair::give(pair.a, acknowledgement(pair, 0x000003));
      EXPECT_EQ(statuses_of(pair.a), std::vector{Status::success}) << row.what;
    }
  }
}

TEST(Requester, IgnoresReservedSyndromes) {
  for (const int syndrome : {0x40, 0x80, 0xff, 0x64, 0x7f}) {
    Pair pair;
    const Bytes data = pattern(10);
    pair.a.post(request_of(SendKind::write, data));
    drain(pair.a);
    Pair::give(pair.a, acknowledgement(pair, 0x100, static_cast<std::uint8_t>(syndrome)));
    EXPECT_EQ(pair.a.statistics().malformed, 1U) << syndrome;
    EXPECT_EQ(pair.a.state(), QueuePair::State::ready) << syndrome;
    EXPECT_FALSE(pair.a.poll()) << syndrome;
  }
}

struct FatalRow {
  std::uint8_t syndrome;
  Status status;
};

TEST(Requester, FatalNakFailsItsRequestAndFlushesTheRest) {
  for (const FatalRow& row :
       {FatalRow{0x61, Status::remote_invalid_request}, FatalRow{0x62, Status::remote_access},
        FatalRow{0x63, Status::remote_operational}}) {
    Pair pair;
    const Bytes data = pattern(300);
    pair.a.post(ReceiveRequest{.id = 9, .buffer = {}});
    for (int i = 0; i < 3; ++i) {
      pair.a.post(request_of(SendKind::write, data));
    }
    drain(pair.a);
    Pair::give(pair.a, acknowledgement(pair, 0x103, row.syndrome)); // inside the second
    EXPECT_EQ(statuses_of(pair.a),
              (std::vector{Status::success, row.status, Status::flushed, Status::flushed}));
    EXPECT_EQ(pair.a.state(), QueuePair::State::error);
    EXPECT_EQ(pair.a.failure(), row.status);
    EXPECT_FALSE(pair.a.next_deadline());
    EXPECT_TRUE(drain(pair.a).empty());
  }
}

TEST(Requester, SilentPeerCostsExactlyAllRetries) {
  for (const int retries : {0, 1, 7}) {
    QueuePairConfig config = local_config();
    config.retry_count = static_cast<std::uint8_t>(retries);
    Pair pair(config);
    const Bytes data = pattern(4 * 256);
    pair.a.post(request_of(SendKind::write, data));
    TimePoint now = kStart;
    for (int round = 0; pair.a.state() == QueuePair::State::ready; ++round) {
      ASSERT_LE(round, retries);
      EXPECT_EQ(psns_of(drain(pair.a, now)), psns(0x100, 4));
      ASSERT_EQ(pair.a.next_deadline(), now + config.ack_timeout);
      pair.a.expire(now + config.ack_timeout - Duration(1)); // too early: nothing
      EXPECT_EQ(pair.a.state(), QueuePair::State::ready);
      now += config.ack_timeout;
      pair.a.expire(now);
    }
    EXPECT_EQ(now - kStart, (retries + 1) * config.ack_timeout);
    EXPECT_EQ(pair.a.statistics().timeouts, static_cast<std::uint64_t>(retries) + 1);
    EXPECT_EQ(statuses_of(pair.a), std::vector{Status::retry_exceeded});
  }
}

TEST(Requester, RetriesForEverWhenToldSo) {
  QueuePairConfig config = local_config();
  config.retry_count = kRetryForever;
  EXPECT_EQ(find_defect(config), "");
  Pair pair(config);
  const Bytes data = pattern(4 * 256);
  pair.a.post(request_of(SendKind::write, data));
  TimePoint now = kStart;
  for (int round = 0; round < 1000; ++round) {
    ASSERT_EQ(psns_of(drain(pair.a, now)), psns(0x100, 4)) << round;
    now += config.ack_timeout;
    pair.a.expire(now);
  }
  EXPECT_EQ(pair.a.state(), QueuePair::State::ready);
}

TEST(Requester, ProgressRestoresTheRetriesAndTheTimer) {
  QueuePairConfig config = local_config();
  config.retry_count = 1;
  Pair pair(config);
  const Bytes data = pattern(20 * 256);
  pair.a.post(request_of(SendKind::write, data));
  TimePoint now = kStart;
  for (std::uint32_t acknowledged = 0; acknowledged < 20; ++acknowledged) {
    drain(pair.a, now);
    now += config.ack_timeout;
    pair.a.expire(now);
    drain(pair.a, now);
    now += config.ack_timeout / 2;
    Pair::give(pair.a, acknowledgement(pair, 0x100 + acknowledged), now);
    if (acknowledged < 19) {
      ASSERT_EQ(pair.a.next_deadline(), now + config.ack_timeout);
    }
  }
  EXPECT_EQ(statuses_of(pair.a), std::vector{Status::success});
  EXPECT_FALSE(pair.a.next_deadline()) << "nothing in flight, no timer";
}

TEST(Requester, NoTimeoutMeansNoTimer) {
  QueuePairConfig config = local_config();
  config.ack_timeout = Duration::zero();
  Pair pair(config);
  const Bytes data = pattern(1);
  pair.a.post(request_of(SendKind::write, data));
  drain(pair.a);
  EXPECT_FALSE(pair.a.next_deadline());
}

TEST(Requester, RnrNakWaitsAsLongAsItSays) {
  Pair pair;
  const Bytes data = pattern(3 * 256);
  pair.a.post(request_of(SendKind::send, data));
  drain(pair.a);
  Pair::give(pair.a, acknowledgement(pair, 0x101, wire::rnr_syndrome(14)));
  ASSERT_EQ(pair.a.next_deadline(), kStart + microseconds(1280));
  EXPECT_TRUE(drain(pair.a).empty());
  pair.a.expire(kStart + microseconds(1279));
  EXPECT_TRUE(drain(pair.a).empty());
  pair.a.expire(kStart + microseconds(1280));
  EXPECT_EQ(psns_of(drain(pair.a)), psns(0x101, 2));
}

TEST(Requester, RnrRetriesRunOutUnlessTheyAreSeven) {
  for (const int retries : {0, 3, 7}) {
    QueuePairConfig config = local_config();
    config.rnr_retry = static_cast<std::uint8_t>(retries);
    Pair pair(config);
    const Bytes data = pattern(5);
    pair.a.post(request_of(SendKind::send, data));
    TimePoint now = kStart;
    int naks = 0;
    while (naks < 100 && pair.a.state() == QueuePair::State::ready) {
      ASSERT_EQ(drain(pair.a, now).size(), 1U);
      Pair::give(pair.a, acknowledgement(pair, 0x100, wire::rnr_syndrome(1)), now);
      ++naks;
      now += microseconds(10);
      pair.a.expire(now);
    }
    EXPECT_EQ(naks, retries == 7 ? 100 : retries + 1);
    const auto expected =
        retries == 7 ? std::vector<Status>{} : std::vector{Status::rnr_retry_exceeded};
    EXPECT_EQ(statuses_of(pair.a), expected);
  }
}

TEST(Requester, ProgressEndsAnRnrWaitAndRestoresItsRetries) {
  QueuePairConfig config = local_config();
  config.rnr_retry = 1;
  Pair pair(config);
  const Bytes data = pattern(5);
  for (int i = 0; i < 5; ++i) {
    pair.a.post(request_of(SendKind::send, data));
  }
  drain(pair.a);
  for (std::uint32_t psn = 0x100; psn < 0x104; ++psn) {
    Pair::give(pair.a, acknowledgement(pair, psn, wire::rnr_syndrome(14)));
    EXPECT_TRUE(drain(pair.a).empty());
    Pair::give(pair.a, acknowledgement(pair, psn)); // a copy of the packet found a receive
    EXPECT_EQ(psns_of(drain(pair.a)), psns(psn + 1, 0x104 - psn));
  }
  EXPECT_EQ(pair.a.state(), QueuePair::State::ready);
  EXPECT_EQ(pair.a.statistics().rnr_naks_received, 4U);
}

TEST(Requester, EveryFullWindowAsksForAnAcknowledgement) {
  for (std::uint32_t window = 1; window <= 9; ++window) {
    QueuePairConfig config = local_config();
    config.window = window;
    config.ack_request_every = 1000;
    Pair pair(config);
    const Bytes data = pattern(40 * 256);
    pair.a.post(request_of(SendKind::write, data));
    std::uint32_t asked = 0xff; // the last PSN that did
    for (int round = 0; round < 4; ++round) {
      const std::uint32_t before = asked;
      for (const Bytes& frame : drain(pair.a)) {
        asked = bth_of(frame).ack_request == 0x80 ? psn_of(frame) : asked;
      }
      ASSERT_NE(asked, before) << "window " << window;
      Pair::give(pair.a, acknowledgement(pair, asked));
    }
  }
}

TEST(Requester, QueueIsFullUntilPolled) {
  QueuePairConfig config = local_config();
  config.send_depth = 3; // not a power of two
  Pair pair(config);
  const Bytes data = pattern(1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(pair.a.post(request_of(SendKind::write, data)), PostResult::posted);
  }
  EXPECT_EQ(pair.a.post(request_of(SendKind::write, data)), PostResult::queue_full);
  pair.settle();
  EXPECT_EQ(pair.a.post(request_of(SendKind::write, data)), PostResult::queue_full);
  EXPECT_TRUE(pair.a.poll());
  EXPECT_EQ(pair.a.post(request_of(SendKind::write, data)), PostResult::posted);
}

TEST(Requester, TooShortABufferGetsNothing) {
  Pair pair;
  const Bytes data = pattern(1);
  pair.a.post(request_of(SendKind::write, data));
  Bytes buffer(pair.a.max_frame_bytes() - 1);
  EXPECT_EQ(pair.a.transmit(buffer, kStart), 0U);
  EXPECT_EQ(drain(pair.a).size(), 1U) << "and loses nothing";
}

// --- responder ----------------------------------------------------------------------------------

TEST(SoftwareResponder, WritesLandWhereTheyShould) {
  Pair pair;
  const Bytes data = pattern(1000);
  SendRequest request = request_of(SendKind::write, data);
  request.remote_address = kRemoteBase + 77;
  pair.a.post(request);
  pair.settle();
  Bytes expected(pair.memory.size());
  std::copy(data.begin(), data.end(), expected.begin() + 77);
  EXPECT_EQ(pair.memory, expected);
  EXPECT_EQ(statuses_of(pair.a), std::vector{Status::success});
  EXPECT_FALSE(pair.b.poll()) << "a plain write completes at its sender alone";
  EXPECT_EQ(pair.b.statistics().messages_received, 1U);
}

TEST(SoftwareResponder, SendsFillReceivesInOrder) {
  Pair pair;
  Bytes first(600);
  Bytes second(600);
  pair.b.post(ReceiveRequest{.id = 1, .buffer = first});
  pair.b.post(ReceiveRequest{.id = 2, .buffer = second});
  const Bytes data = pattern(600);
  const std::span<const std::uint8_t> all = data;
  pair.a.post(request_of(SendKind::send, all));
  pair.a.post(request_of(SendKind::send_immediate, all.first(10)));
  pair.settle();
  const std::vector<Completion> done = poll_all(pair.b);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].id, 1U);
  EXPECT_EQ(done[0].bytes, 600U);
  EXPECT_EQ(done[0].kind, CompletionKind::receive);
  EXPECT_EQ(done[0].immediate, std::nullopt);
  EXPECT_EQ(done[1].id, 2U);
  EXPECT_EQ(done[1].bytes, 10U);
  EXPECT_EQ(done[1].immediate, 0x0badf00dU);
  EXPECT_EQ(first, data);
  EXPECT_TRUE(std::equal(data.begin(), data.begin() + 10, second.begin()));
  EXPECT_EQ(second[10], 0);
}

/// A header's end within a packet, at a packet's end and in a later packet.
TEST(SoftwareResponder, StoresASendInHeaderAndBufferWhereverThePacketsEnd) {
  for (const std::size_t header_bytes : {1U, 40U, 256U, 300U, 512U, 599U, 600U}) {
    Pair pair; // of path MTU 256
    const Bytes data = pattern(600);
    Bytes header(header_bytes);
    Bytes buffer(601 - header_bytes);
    pair.b.post(ReceiveRequest{.id = 3, .header = header, .buffer = buffer});
    pair.a.post(request_of(SendKind::send_immediate, data));
    pair.settle();
    const std::vector<Completion> done = poll_all(pair.b);
    ASSERT_EQ(done.size(), 1U) << header_bytes;
    EXPECT_EQ(done[0].bytes, 600U);
    header.insert(header.end(), buffer.begin(), buffer.end());
    EXPECT_EQ(header.back(), 0) << "the place after the message";
    header.pop_back();
    EXPECT_EQ(header, data) << header_bytes;
  }
}

TEST(SoftwareResponder, RefusesASendThatIsLongerThanHeaderAndBuffer) {
  Pair pair;
  const Bytes data = pattern(600);
  Bytes header(40);
  Bytes buffer(559);
  pair.b.post(ReceiveRequest{.id = 3, .header = header, .buffer = buffer});
  pair.a.post(request_of(SendKind::send, data));
  pair.settle();
  const std::vector<Completion> done = poll_all(pair.b);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, Status::local_length);
}

TEST(SoftwareResponder, WriteWithImmediateConsumesAReceiveAndLeavesItsBuffer) {
  Pair pair;
  Bytes buffer(600);
  pair.b.post(ReceiveRequest{.id = 5, .buffer = buffer});
  const Bytes data = pattern(600);
  pair.a.post(request_of(SendKind::write_immediate, data));
  pair.settle();
  const std::vector<Completion> done = poll_all(pair.b);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].id, 5U);
  EXPECT_EQ(done[0].kind, CompletionKind::receive_write_immediate);
  EXPECT_EQ(done[0].bytes, 600U);
  EXPECT_EQ(done[0].immediate, 0x0badf00dU);
  EXPECT_EQ(buffer, Bytes(600));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), pair.memory.begin()));
}

TEST(SoftwareResponder, DuplicatesAreAcknowledgedAndNotExecuted) {
  Pair pair;
  Bytes buffer(300);
  pair.b.post(ReceiveRequest{.id = 1, .buffer = buffer});
  pair.b.post(ReceiveRequest{.id = 2, .buffer = buffer});
  const Bytes data = pattern(300);
  pair.a.post(request_of(SendKind::write_immediate, data));
  const std::vector<Bytes> frames = drain(pair.a);
  for (const Bytes& frame : frames) {
    Pair::give(pair.b, frame);
  }
  EXPECT_EQ(poll_all(pair.b).size(), 1U);
  ASSERT_EQ(drain(pair.b).size(), 1U);
  std::fill(pair.memory.begin(), pair.memory.end(), 0xee);
  for (const Bytes& frame : frames) {
    Pair::give(pair.b, frame);
    const std::vector<Bytes> replies = drain(pair.b);
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(psn_of(replies[0]), 0x101U) << "cumulative: all that has arrived";
    EXPECT_EQ(aeth_of(replies[0]).syndrome, wire::kAckUnlimited);
    EXPECT_EQ(aeth_of(replies[0]).message_sequence.get(), 1U);
  }
  EXPECT_EQ(pair.memory, Bytes(pair.memory.size(), 0xee)) << "the write must not happen again";
  EXPECT_TRUE(poll_all(pair.b).empty()) << "nor may another receive be consumed";
  EXPECT_EQ(pair.b.statistics().duplicates, 2U);
  EXPECT_EQ(pair.b.statistics().messages_received, 1U);
}

TEST(SoftwareResponder, OneNakForAGap) {
  Pair pair;
  const Bytes data = pattern(8 * 256);
  pair.a.post(request_of(SendKind::write, data));
  const std::vector<Bytes> frames = drain(pair.a);
  Pair::give(pair.b, frames[0]);
  std::vector<Bytes> replies;
  const auto collect = [&] {
    for (Bytes& frame : drain(pair.b)) {
      replies.push_back(std::move(frame));
    }
  };
  for (const std::size_t i : {2, 3, 4}) { // 1 is lost
    Pair::give(pair.b, frames[i]);
    collect();
  }
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(psn_of(replies[0]), 0x101U);
  EXPECT_EQ(aeth_of(replies[0]).syndrome, 0x60);
  Pair::give(pair.b, frames[1]);
  for (const std::size_t i : {3, 4}) { // then 2
    Pair::give(pair.b, frames[i]);
    collect();
  }
  ASSERT_EQ(replies.size(), 2U) << "a new gap, a new NAK";
  EXPECT_EQ(psn_of(replies[1]), 0x102U);
  EXPECT_EQ(aeth_of(replies[1]).syndrome, 0x60);
  EXPECT_EQ(pair.b.statistics().out_of_sequence, 5U);
}

TEST(SoftwareResponder, NakNotSentYetIsWithdrawnWhenTheGapCloses) {
  Pair pair;
  const Bytes data = pattern(4 * 256);
  pair.a.post(request_of(SendKind::write, data));
  const std::vector<Bytes> frames = drain(pair.a);
  for (const std::size_t i : {0, 2, 1}) {
    Pair::give(pair.b, frames[i]);
  }
  const std::vector<Bytes> replies = drain(pair.b);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(aeth_of(replies[0]).syndrome, wire::kAckUnlimited);
  EXPECT_EQ(psn_of(replies[0]), 0x101U);
}

TEST(SoftwareResponder, AcknowledgesEveryFewPacketsEvenUnasked) {
  QueuePairConfig config = local_config();
  config.acknowledge_every = 3;
  config.ack_request_every = 1000;
  config.window = 1000;
  Pair pair(config);
  const Bytes data = pattern(8 * 256);
  pair.a.post(request_of(SendKind::write, data));
  std::vector<std::uint32_t> acknowledged;
  for (const Bytes& frame : drain(pair.a)) {
    Pair::give(pair.b, frame);
    for (const Bytes& reply : drain(pair.b)) {
      acknowledged.push_back(psn_of(reply));
    }
  }
  EXPECT_EQ(acknowledged, (std::vector<std::uint32_t>{0x102, 0x105, 0x107}));
}

TEST(SoftwareResponder, SeveralPacketsReceivedAtOnceShareOneAck) {
  Pair pair;
  const Bytes data = pattern(10);
  for (int i = 0; i < 5; ++i) {
    pair.a.post(request_of(SendKind::write, data));
  }
  for (const Bytes& frame : drain(pair.a)) {
    Pair::give(pair.b, frame);
  }
  EXPECT_EQ(psns_of(drain(pair.b)), psns(0x104, 1));
}

TEST(SoftwareResponder, RnrUntilAReceiveIsPosted) {
  for (const SendKind kind : {SendKind::send, SendKind::write_immediate}) {
    Pair pair;
    const Bytes data = pattern(2 * 256 + 1);
    pair.a.post(request_of(kind, data));
    const std::vector<Bytes> frames = drain(pair.a);
    const std::size_t blocked = kind == SendKind::send ? 0 : 2; // where a receive is needed
    for (const Bytes& frame : frames) {
      Pair::give(pair.b, frame);
    }
    std::vector<Bytes> replies = drain(pair.b);
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(psn_of(replies[0]), 0x100 + blocked);
    EXPECT_EQ(aeth_of(replies[0]).syndrome, 0x20 | 12);
    Bytes buffer(1024);
    pair.b.post(ReceiveRequest{.id = 1, .buffer = buffer});
    for (std::size_t i = blocked; i < frames.size(); ++i) {
      Pair::give(pair.b, frames[i]);
    }
    EXPECT_EQ(statuses_of(pair.b), std::vector{Status::success});
    const Bytes& got = kind == SendKind::send ? buffer : pair.memory;
    EXPECT_TRUE(std::equal(data.begin(), data.end(), got.begin()));
  }
}

TEST(SoftwareResponder, RnrEachTimeTheRequestComes) {
  Pair pair;
  const Bytes data = pattern(1);
  pair.a.post(request_of(SendKind::send, data));
  const std::vector<Bytes> frames = drain(pair.a);
  for (int i = 0; i < 3; ++i) {
    Pair::give(pair.b, frames[0]);
    EXPECT_EQ(drain(pair.b).size(), 1U);
  }
  EXPECT_EQ(pair.b.statistics().rnr_naks_sent, 3U);
}

TEST(SoftwareResponder, TooLongASendFailsItsReceive) {
  Pair pair;
  Bytes buffer(300);
  Bytes canary(300, 0xaa);
  pair.b.post(ReceiveRequest{.id = 1, .buffer = std::span(buffer).first(256)});
  pair.b.post(ReceiveRequest{.id = 2, .buffer = canary});
  const Bytes data = pattern(257);
  pair.a.post(request_of(SendKind::send, data));
  pair.settle();
  EXPECT_EQ(statuses_of(pair.b), (std::vector{Status::local_length, Status::flushed}));
  EXPECT_EQ(statuses_of(pair.a), std::vector{Status::remote_invalid_request});
  EXPECT_EQ(buffer[256], 0);
  EXPECT_EQ(canary, Bytes(300, 0xaa));
}

struct AccessRow {
  const char* what;
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t key = kRemoteKey;
  bool allowed = false;
};

TEST(SoftwareResponder, WritesStayInsideTheirRegion) {
  const std::uint64_t end = kRemoteBase + 65536;
  for (const AccessRow& row : {
           AccessRow{"whole region", kRemoteBase, 65536, kRemoteKey, true},
           AccessRow{"last byte", end - 1, 1, kRemoteKey, true},
           AccessRow{"one byte past", end - 255, 256},
           AccessRow{"past the end by a later packet", end - 512, 513},
           AccessRow{"before", kRemoteBase - 1, 1}, AccessRow{"far away", 0, 1},
           AccessRow{"address wraps", ~std::uint64_t{0}, 512},
           AccessRow{"unknown key", kRemoteBase, 1, kRemoteKey + 1},
           AccessRow{"nothing, anywhere, any key", 0, 0, 0, true}, // IBTA C9-88
       }) {
    Pair pair;
    const Bytes data = pattern(row.bytes);
    SendRequest request = request_of(SendKind::write, data);
    request.remote_address = row.address;
    request.remote_key = row.key;
    pair.a.post(request);
    pair.settle();
    EXPECT_EQ(statuses_of(pair.a),
              std::vector{row.allowed ? Status::success : Status::remote_access})
        << row.what;
    if (!row.allowed) {
      EXPECT_EQ(pair.b.failure(), Status::local_protection) << row.what;
      EXPECT_EQ(pair.memory, Bytes(65536)) << row.what << ": not a byte is written";
    }
  }
}

TEST(SoftwareResponder, RegionWithdrawnInsideAMessage) {
  Pair pair;
  const Bytes data = pattern(3 * 256);
  pair.a.post(request_of(SendKind::write, data));
  const std::vector<Bytes> frames = drain(pair.a);
  Pair::give(pair.b, frames[0]);
  EXPECT_TRUE(pair.table.remove(kRemoteKey));
  Pair::give(pair.b, frames[1]);
  EXPECT_EQ(pair.b.failure(), Status::local_protection);
}

struct InvalidRow {
  const char* what;
  std::vector<std::pair<Opcode, std::size_t>> packets; // the last of them is the bad one
  std::uint32_t message_bytes = 512;
};

TEST(SoftwareResponder, RefusesWhatMakesNoSense) {
  const std::vector<InvalidRow> rows{
      {"middle without first", {{Opcode::write_middle, 256}}},
      {"last without first", {{Opcode::send_last, 4}}},
      {"first inside a message", {{Opcode::write_first, 256}, {Opcode::write_first, 256}}},
      {"only inside a message", {{Opcode::send_first, 256}, {Opcode::send_only, 4}}},
      {"send middle in a write", {{Opcode::write_first, 256}, {Opcode::send_middle, 256}}},
      {"write last in a send", {{Opcode::send_first, 256}, {Opcode::write_last, 4}}},
      {"first not full", {{Opcode::send_first, 252}}},
      {"first over the MTU", {{Opcode::send_first, 260}}},
      {"middle not full", {{Opcode::send_first, 256}, {Opcode::send_middle, 255}}},
      {"last over the MTU", {{Opcode::send_first, 256}, {Opcode::send_last, 257}}},
      {"last empty", {{Opcode::send_first, 256}, {Opcode::send_last, 0}}},
      {"only over the MTU", {{Opcode::send_only, 257}}},
      {"write shorter than its RETH", {{Opcode::write_only, 8}}, 12},
      {"write longer than its RETH", {{Opcode::write_only, 12}}, 8},
      {"write of several, too short", {{Opcode::write_first, 256}, {Opcode::write_last, 8}}},
      {"write of several, too long", {{Opcode::write_first, 256}, {Opcode::write_middle, 256}}},
      {"more than 2^31 bytes", {{Opcode::write_first, 256}}, 0x80000001},
      {"READ request", {{Opcode::read_request, 16}}},
  };
  for (const InvalidRow& row : rows) {
    Pair pair;
    Bytes buffer(4096);
    pair.b.post(ReceiveRequest{.id = 1, .buffer = buffer});
    RequestHeader header{.opcode = Opcode::send_only,
                         .ack_request = AckRequest::no,
                         .psn = 0x100,
                         .remote_address = kRemoteBase,
                         .remote_key = kRemoteKey,
                         .message_bytes = row.message_bytes,
                         .immediate = 0};
    for (const auto& [opcode, bytes] : row.packets) {
      EXPECT_EQ(pair.b.state(), QueuePair::State::ready) << row.what;
      header.opcode = opcode;
      Pair::give(pair.b, request_frame(pair, header, bytes));
      ++header.psn;
    }
    EXPECT_EQ(pair.b.failure(), Status::local_invalid_request) << row.what;
    EXPECT_EQ(statuses_of(pair.b), std::vector{Status::flushed}) << row.what;
    const std::vector<Bytes> replies = drain(pair.b);
    ASSERT_EQ(replies.size(), 1U) << row.what;
    EXPECT_EQ(aeth_of(replies[0]).syndrome, 0x61) << row.what;
    EXPECT_EQ(psn_of(replies[0]), header.psn - 1) << row.what;
    EXPECT_TRUE(drain(pair.b).empty()) << row.what;
  }
}

// --- what every packet goes through -------------------------------------------------------------

struct DropRow {
  const char* what;
  std::function<void(Bytes&)> spoil;
  std::uint64_t Statistics::*counter;
};

/// Frames of a write of 10 bytes over IPv4: BTH at 42, ICRC at 82.
TEST(QueuePair, DropsUnderAName) {
  const std::vector<DropRow> rows{
      {"payload flipped", [](Bytes& f) { f[75] ^= 0x10; }, &Statistics::bad_icrc},
      {"PSN flipped", [](Bytes& f) { f[53] ^= 0x01; }, &Statistics::bad_icrc},
      {"ICRC flipped", [](Bytes& f) { f.back() ^= 0x80; }, &Statistics::bad_icrc},
      {"cut short", [](Bytes& f) { f.resize(f.size() - 4); }, &Statistics::malformed},
      {"UDP length", [](Bytes& f) { f[39] ^= 0x04; }, &Statistics::malformed},
      {"pad", [](Bytes& f) { f[43] ^= 0x10; }, &Statistics::bad_icrc},
      {"TVer", [](Bytes& f) { f[43] |= 0x01; }, &Statistics::malformed},
      {"another QP",
       [](Bytes& f) {
         f[49] ^= 1;
         sign(f);
       },
       &Statistics::misdirected},
      {"from elsewhere",
       [](Bytes& f) {
         f[29] ^= 1;
         sign(f);
       },
       &Statistics::misdirected},
      {"to elsewhere",
       [](Bytes& f) {
         f[33] ^= 1;
         sign(f);
       },
       &Statistics::misdirected},
      {"partition",
       [](Bytes& f) {
         f[45] ^= 1;
         sign(f);
       },
       &Statistics::misdirected},
      {"not RoCE", [](Bytes& f) { f[37] ^= 1; }, &Statistics::misdirected},
      {"UC write",
       [](Bytes& f) {
         f[42] = 0x2a;
         sign(f);
       },
       &Statistics::unsupported},
      {"atomic acknowledge",
       [](Bytes& f) {
         f[42] = 0x12;
         sign(f);
       },
       &Statistics::unsupported},
      {"READ response",
       [](Bytes& f) {
         f[42] = 0x0e;
         sign(f);
       },
       &Statistics::stale_acks},
      {"READ response whose AETH is no ACK",
       [](Bytes& f) {
         put(f, 42, {0x10});
         put(f, 54, {0x60});
         sign(f);
       },
       &Statistics::malformed},
      {"CNP",
       [](Bytes& f) {
         f[42] = 0x81;
         sign(f);
       },
       &Statistics::cnps_received},
      {"ACK too long",
       [](Bytes& f) {
         f[42] = 0x11;
         sign(f);
       },
       &Statistics::malformed},
      {"ACK, TVer",
       [](Bytes& f) {
         put(f, 42, {0x11, 0x02});
         sign(f);
       },
       &Statistics::malformed},
  };
  for (const DropRow& row : rows) {
    Pair pair;
    const Bytes data = pattern(10);
    pair.a.post(request_of(SendKind::write, data));
    Bytes frame = drain(pair.a)[0];
    const Bytes good = frame;
    row.spoil(frame);
    Statistics expected;
    expected.packets_received = 1;
    expected.bytes_received = frame.size();
    expected.*row.counter += 1;
    Pair::give(pair.b, frame);
    EXPECT_EQ(pair.b.statistics(), expected) << row.what;
    EXPECT_TRUE(drain(pair.b).empty()) << row.what << ": silently";
    EXPECT_EQ(pair.memory, Bytes(65536)) << row.what;
    Pair::give(pair.b, good);
    EXPECT_EQ(pair.b.statistics().messages_received, 1U) << row.what << ": and nothing breaks";
  }
}

/// IBTA annex A17.3.3: the ICRC does not cover what routers change.
TEST(QueuePair, TakesFramesThatRoutersTouched) {
  Pair pair;
  const Bytes data = pattern(10);
  pair.a.post(request_of(SendKind::write, data));
  Bytes frame = drain(pair.a)[0];
  frame[15] = 0x03; // congestion experienced
  frame[22] -= 1;   // TTL
  put(frame, 24, {0x12, 0x34});
  frame[46] = 0xc0; // FECN, BECN
  Pair::give(pair.b, frame);
  EXPECT_EQ(pair.b.statistics().messages_received, 1U);
}

/// A sender that computes a valid ICRC can write anything into a frame. Nothing outside the region,
/// the receive buffers and what is read into may change, and nothing may crash (run this under
/// ASan).
TEST(QueuePair, SurvivesSignedNonsense) {
  std::mt19937_64 random(1);
  const Bytes data = pattern(3 * 256 + 5);
  for (int round = 0; round < 20000; ++round) {
    QueuePairConfig config = reading_config(round % 2 == 0 ? 4 : 6);
    config.receive_psn = config.send_psn; // so that an answer made of a request answers something
    Pair pair(config, 1024);
    Bytes buffer(512);
    for (int i = 0; i < 4; ++i) {
      pair.b.post(ReceiveRequest{.id = 1, .buffer = buffer});
    }
    pair.b.post(request_of(SendKind::write, data)); // so that ACKs have something to acknowledge
    Bytes target(2 * 256);
    pair.b.post(read_into(target));
    drain(pair.b);
    pair.a.post(request_of(static_cast<SendKind>(random() % 4), data));
    for (Bytes& frame : drain(pair.a)) {
      const std::size_t transport = wire::parse(frame).bth_offset;
      for (std::uint64_t changes = random() % 4; changes != 0; --changes) {
        const std::size_t at =
            transport + random() % std::min<std::size_t>(32, frame.size() - transport);
        const bool is_address = at >= transport + 5 && at < transport + 8;
        frame[at] = is_address ? frame[at] : static_cast<std::uint8_t>(random() % 32);
      }
      if (random() % 4 == 0) {
        frame[transport] = 0x11;
      }
      if (wire::parse(frame).icrc_offset != 0) {
        sign(frame);
      }
      Pair::give(pair.b, frame);
    }
    const std::uint64_t completions = poll_all(pair.b).size();
    ASSERT_LE(completions, 6U);
    pair.b.close();
    ASSERT_EQ(poll_all(pair.b).size(), 6 - completions) << "each request completes exactly once";
  }
}

TEST(QueuePair, InErrorEverythingFlushesAndNothingMoves) {
  Pair pair;
  const Bytes data = pattern(10);
  pair.b.post(request_of(SendKind::send, data));
  pair.b.post(ReceiveRequest{.id = 1, .buffer = {}});
  pair.a.post(request_of(SendKind::write, data));
  pair.b.close();
  EXPECT_EQ(pair.b.state(), QueuePair::State::error);
  EXPECT_EQ(pair.b.failure(), Status::flushed);
  pair.b.post(request_of(SendKind::send, data));
  pair.b.post(ReceiveRequest{.id = 2, .buffer = {}});
  EXPECT_EQ(statuses_of(pair.b), std::vector(4, Status::flushed));
  pair.settle();
  EXPECT_EQ(pair.b.statistics().dropped_in_error, 1U);
  EXPECT_EQ(pair.memory, Bytes(65536));
  EXPECT_FALSE(pair.b.next_deadline());
}

TEST(QueuePair, RepliesGoBeforeRequests) {
  Pair pair;
  const Bytes data = pattern(10);
  pair.a.post(request_of(SendKind::write, data));
  Bytes frame = drain(pair.a)[0];
  pair.b.post(request_of(SendKind::send, data));
  Pair::give(pair.b, frame);
  const std::vector<Bytes> frames = drain(pair.b);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(bth_of(frames[0]).opcode, 0x11);
  EXPECT_EQ(bth_of(frames[1]).opcode, 0x04);
}

TEST(QueuePair, RefusesBadConfigurations) {
  const std::vector<std::pair<const char*, std::function<void(QueuePairConfig&)>>> rows{
      {"local_qp is 1, allowed are 2 to 16777215", [](auto& c) { c.local_qp = 1; }},
      {"remote_qp is 16777216", [](auto& c) { c.remote_qp = 1 << 24; }},
      {"send_psn is 16777216", [](auto& c) { c.send_psn = 1 << 24; }},
      {"receive_psn is 16777216", [](auto& c) { c.receive_psn = 1 << 24; }},
      {"path_mtu is 8192", [](auto& c) { c.path_mtu = 8192; }},
      {"path_mtu is 1500, allowed are 256, 512", [](auto& c) { c.path_mtu = 1500; }},
      {"retry_count is 8", [](auto& c) { c.retry_count = 8; }},
      {"rnr_retry is 8", [](auto& c) { c.rnr_retry = 8; }},
      {"rnr_timer is 32", [](auto& c) { c.rnr_timer = 32; }},
      {"window is 0", [](auto& c) { c.window = 0; }},
      {"send_depth is 0", [](auto& c) { c.send_depth = 0; }},
      {"receive_depth is 0", [](auto& c) { c.receive_depth = 0; }},
      {"max_rd_atomic is 256", [](auto& c) { c.max_rd_atomic = 256; }},
      {"max_dest_rd_atomic is 256", [](auto& c) { c.max_dest_rd_atomic = 256; }},
      {"of different families", [](auto& c) { c.remote_ip = *wire::parse_ip("2001:db8::1"); }},
      {"ack_timeout is -1 ns", [](auto& c) { c.ack_timeout = Duration(-1); }},
  };
  EXPECT_EQ(find_defect(local_config()), "");
  const MemoryTable memory;
  for (const auto& [text, spoil] : rows) {
    QueuePairConfig config = local_config();
    spoil(config);
    EXPECT_NE(find_defect(config).find(text), std::string::npos) << find_defect(config);
    EXPECT_THROW(QueuePair(config, memory), std::invalid_argument) << text;
  }
}

TEST(Statistics, EveryCounterHasANameOfItsOwn) {
  std::set<std::string_view> names;
  Statistics statistics;
  for (const CounterInfo& counter : kCounters) {
    EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
    EXPECT_FALSE(counter.meaning.empty()) << counter.name;
    statistics.*counter.value += 1;
  }
  for (const CounterInfo& counter : kCounters) {
    EXPECT_EQ(statistics.*counter.value, 1U) << counter.name;
  }
  EXPECT_EQ(sizeof(Statistics), kCounters.size() * sizeof(std::uint64_t));
}

TEST(MemoryTable, ResolvesWithinOneRegion) {
  Bytes first(100);
  Bytes second(100);
  MemoryTable table;
  EXPECT_TRUE(table.add(7, 1000, first));
  EXPECT_TRUE(table.add(3, 1100, second));
  EXPECT_FALSE(table.add(7, 5000, second)) << "key taken";
  EXPECT_FALSE(table.add(8, ~std::uint64_t{0}, second)) << "wraps";
  EXPECT_TRUE(table.add(9, second));
  EXPECT_EQ(table.resolve(7, 1010, 90, Access::write)->data(), first.data() + 10);
  EXPECT_EQ(table.resolve(3, 1100, 100, Access::write)->data(), second.data());
  EXPECT_EQ(table.resolve(9, reinterpret_cast<std::uintptr_t>(second.data()) + 5, 1, Access::write)
                ->data(),
            second.data() + 5);
  EXPECT_FALSE(table.resolve(7, 1050, 100, Access::write)) << "into the neighbour";
  EXPECT_FALSE(table.resolve(7, 1010, ~std::uint64_t{0}, Access::write));
  EXPECT_TRUE(table.remove(7));
  EXPECT_FALSE(table.remove(7));
  EXPECT_FALSE(table.resolve(7, 1010, 1, Access::write));
}

TEST(MemoryTable, GivesARegionForWhatItAllowsAlone) {
  struct Row {
    Access allowed;
    bool write, read, both;
  };

  for (const Row& row :
       {Row{Access::write, true, false, false}, Row{Access::read, false, true, false},
        Row{Access::read_and_write, true, true, true}}) {
    Bytes bytes(10);
    MemoryTable table;
    table.add(7, 1000, bytes, row.allowed);
    EXPECT_EQ(table.resolve(7, 1000, 10, Access::write).has_value(), row.write);
    EXPECT_EQ(table.resolve(7, 1000, 10, Access::read).has_value(), row.read);
    EXPECT_EQ(table.resolve(7, 1000, 10, Access::read_and_write).has_value(), row.both);
  }
}

// --- device -------------------------------------------------------------------------------------

/// Queue pairs of one device, each connected to one of another.
struct Devices {
  explicit Devices(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      QueuePairConfig config = local_config();
      config.local_qp = 0x100 + i;
      config.remote_qp = 0x200 + i;
      config.send_psn = 0x1000 * i;
      left.create(config);
      right.create(mirrored(config));
    }
  }

  Device left;
  Device right;
};

TEST(Device, QueuePairsTakeTurns) {
  Devices devices(3);
  const Bytes data = pattern(3 * 256);
  for (const std::size_t i : {0, 2}) {
    devices.left[i].post(request_of(SendKind::write, data));
  }
  std::vector<std::uint32_t> order;
  Bytes buffer(devices.left.max_frame_bytes());
  while (devices.left.transmit(buffer, kStart) != 0) {
    order.push_back(wire::parse(buffer).destination_qp);
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0x200, 0x202, 0x200, 0x202, 0x200, 0x202}));
}

TEST(Device, DeliversByQueuePairAndAddress) {
  Devices devices(3);
  QueuePairConfig same_number = mirrored(local_config());
  same_number.local_qp = 0x201;
  same_number.local_ip = *wire::parse_ip("192.0.2.99");
  QueuePair& namesake = devices.right.create(same_number);
  EXPECT_THROW(devices.right.create(same_number), std::invalid_argument);
  Bytes region(1024);
  devices.right.memory().add(kRemoteKey, kRemoteBase, region);
  const Bytes data = pattern(700);
  devices.left[1].post(request_of(SendKind::write, data));
  Bytes buffer(devices.left.max_frame_bytes());
  while (const std::size_t length = devices.left.transmit(buffer, kStart)) {
    devices.right.receive(std::span(buffer).first(length), kStart);
  }
  EXPECT_EQ(devices.right[1].statistics().packets_received, 3U);
  EXPECT_EQ(devices.right[0].statistics().packets_received, 0U);
  EXPECT_EQ(namesake.statistics().packets_received, 0U);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), region.begin()));
  Bytes arp(60);
  put(arp, 12, {0x08, 0x06});
  devices.right.receive(arp, kStart);
  EXPECT_EQ(devices.right.statistics().not_roce, 1U);
  const std::size_t length = devices.right.transmit(buffer, kStart);
  ASSERT_NE(length, 0U);
  devices.right.receive(std::span(buffer).first(length), kStart); // its own ACK: for left
  EXPECT_EQ(devices.right.statistics().unknown_queue_pair, 1U);
}

TEST(Device, DeadlineIsTheEarliest) {
  Devices devices(2);
  EXPECT_FALSE(devices.left.next_deadline());
  const Bytes data = pattern(1);
  Bytes buffer(devices.left.max_frame_bytes());
  devices.left[1].post(request_of(SendKind::write, data));
  devices.left.transmit(buffer, kStart);
  devices.left[0].post(request_of(SendKind::write, data));
  devices.left.transmit(buffer, kStart + microseconds(300));
  EXPECT_EQ(devices.left.next_deadline(), kStart + milliseconds(1));
  devices.left.expire(kStart + milliseconds(1));
  EXPECT_EQ(devices.left[0].statistics().timeouts, 0U);
  EXPECT_EQ(devices.left[1].statistics().timeouts, 1U);
  EXPECT_EQ(devices.left.next_deadline(), kStart + microseconds(1300));
}

// --- frames of Linux soft-RoCE ------------------------------------------------------------------

/// One direction of a captured connection: the requests from rank 0 to rank 1 and the replies.
struct Captured {
  std::vector<Bytes> requests;
  std::vector<Bytes> replies;
};

Captured first_connection(const std::string& name) {
  constexpr std::uint64_t rank0 = 0x0a4d0001;
  constexpr std::uint64_t rank1 = 0x0a4d0002;
  Captured captured;
  for (Bytes& frame : test::captured_frames(name)) {
    const std::uint64_t source = number_at(frame, offset::source, 4);
    const std::uint64_t destination = number_at(frame, offset::destination, 4);
    if (source == rank0 && destination == rank1 && frame[offset::opcode] <= 0x0b) {
      captured.requests.push_back(std::move(frame));
    } else if (source == rank1 && destination == rank0 && frame[offset::opcode] == 0x11) {
      captured.replies.push_back(std::move(frame));
    }
  }
  return captured;
}

/// Rank 1's end, from the capture.
QueuePairConfig receiver_of(const Captured& captured, std::uint32_t mtu) {
  const Bytes& request = captured.requests.front();
  const Bytes& reply = captured.replies.front();
  QueuePairConfig config;
  std::copy_n(reply.begin(), 6, config.remote_mac.bytes.begin());
  std::copy_n(reply.begin() + 6, 6, config.local_mac.bytes.begin());
  config.local_ip = wire::IpAddress::from_v4(reply.data() + offset::source);
  config.remote_ip = wire::IpAddress::from_v4(reply.data() + offset::destination);
  config.udp_source_port = static_cast<std::uint16_t>(number_at(reply, offset::udp_source_port, 2));
  config.local_qp = static_cast<std::uint32_t>(number_at(request, offset::destination_qp, 3));
  config.remote_qp = static_cast<std::uint32_t>(number_at(reply, offset::destination_qp, 3));
  config.receive_psn = static_cast<std::uint32_t>(number_at(request, offset::psn, 3));
  config.path_mtu = mtu;
  config.acknowledge_every = 1U << 20; // rxe acknowledges only on request
  config.receive_depth = 256;
  return config;
}

/// The receiver's memory after each packet, in PSN order and once, was written where its message's
/// RETH says.
struct NaiveMemory {
  std::uint64_t base = ~std::uint64_t{0};
  std::uint32_t remote_key = 0;
  Bytes bytes;

  explicit NaiveMemory(const std::vector<Bytes>& requests) {
    std::map<std::uint64_t, const Bytes*> in_order; // by distance from the first PSN
    const std::uint64_t first_psn = number_at(requests.front(), offset::psn, 3);
    std::uint64_t end = 0;
    for (const Bytes& frame : requests) {
      in_order[(number_at(frame, offset::psn, 3) - first_psn) & 0xffffff] = &frame;
      if (has_reth(frame)) {
        const std::uint64_t address = number_at(frame, offset::extension, 8);
        remote_key = static_cast<std::uint32_t>(number_at(frame, offset::extension + 8, 4));
        base = std::min(base, address);
        end = std::max(end, address + number_at(frame, offset::extension + 12, 4));
      }
    }
    bytes.resize(end - base);
    std::uint64_t at = 0;
    for (const auto& [distance, frame] : in_order) {
      const std::size_t reth = has_reth(*frame) ? 16 : 0;
      const bool with_immediate = frame->at(offset::opcode) == 9 || frame->at(offset::opcode) == 11;
      const std::size_t payload = offset::extension + reth + (with_immediate ? 4 : 0);
      const std::size_t pad = frame->at(offset::opcode + 1) >> 4 & 3;
      if (has_reth(*frame)) {
        at = number_at(*frame, offset::extension, 8) - base;
      }
      for (std::size_t i = payload; i < frame->size() - 4 - pad; ++i) {
        bytes[at++] = frame->at(i);
      }
    }
  }

  static bool has_reth(const Bytes& frame) {
    const std::uint8_t opcode = frame[offset::opcode];
    return opcode == 6 || opcode == 10 || opcode == 11;
  }
};

struct CaptureRow {
  const char* name;
  std::uint32_t mtu;
  std::size_t replies; // counted by another program, tests/replay/roce.py
  bool lossy;
};

void PrintTo(const CaptureRow& row, std::ostream* out) {
  *out << row.name;
}

class SoftRoce : public testing::TestWithParam<CaptureRow> {};

/// Feeds one captured direction to a responder. Its memory must be what the packets say. It must
/// send every reply that the real receiver sent, in the same order. (It may send more: in the
/// capture with losses some real replies were lost before the bridge.)
TEST_P(SoftRoce, ResponderDoesWhatTheRealOneDid) {
  const Captured captured = first_connection(GetParam().name);
  ASSERT_EQ(captured.replies.size(), GetParam().replies);
  NaiveMemory expected(captured.requests);
  Bytes memory(expected.bytes.size());
  MemoryTable table;
  table.add(expected.remote_key, expected.base, memory);
  QueuePair queue_pair(receiver_of(captured, GetParam().mtu), table);
  for (int i = 0; i < 256; ++i) {
    queue_pair.post(ReceiveRequest{.id = 0, .buffer = {}});
  }
  auto next_reply = captured.replies.begin();
  for (Bytes frame : captured.requests) {
    queue_pair.receive(frame, kStart);
    for (const Bytes& reply : drain(queue_pair)) {
      if (next_reply != captured.replies.end() &&
          without_ip_id(reply) == without_ip_id(*next_reply)) {
        ++next_reply;
      }
    }
  }
  EXPECT_EQ(next_reply - captured.replies.begin(),
            static_cast<std::ptrdiff_t>(captured.replies.size()));
  EXPECT_EQ(memory, expected.bytes);
  EXPECT_EQ(queue_pair.state(), QueuePair::State::ready);
  EXPECT_EQ(queue_pair.statistics().bad_icrc, 0U);
  EXPECT_EQ(queue_pair.statistics().malformed, 0U);
}

/// Posts the captured messages to a requester. It must send what the real one sent, byte for byte.
/// Only captures without losses.
TEST_P(SoftRoce, RequesterSendsWhatTheRealOneSent) {
  if (GetParam().lossy) {
    return;
  }
  const Captured captured = first_connection(GetParam().name);
  QueuePairConfig config = mirrored(receiver_of(captured, GetParam().mtu));
  config.window = 1U << 16;
  config.ack_request_every = 1U << 16; // rxe asks at a message's end, and every 64 packets
  config.send_depth = 256;
  const MemoryTable memory;
  QueuePair queue_pair(config, memory);
  std::vector<Bytes> messages;
  messages.reserve(captured.requests.size());
  std::vector<SendRequest> requests;
  for (const Bytes& frame : captured.requests) {
    const std::uint8_t opcode = frame[offset::opcode];
    const bool with_immediate = opcode == 9 || opcode == 11;
    const bool with_reth = NaiveMemory::has_reth(frame);
    if (with_reth) {
      requests.push_back(
          {.id = 0,
           .kind = SendKind::write,
           .header = {},
           .data = {},
           .remote_address = number_at(frame, offset::extension, 8),
           .remote_key = static_cast<std::uint32_t>(number_at(frame, offset::extension + 8, 4)),
           .immediate = 0});
      messages.emplace_back();
    }
    const std::size_t immediate = offset::extension + (with_reth ? 16 : 0);
    if (with_immediate) {
      requests.back().kind = SendKind::write_immediate;
      requests.back().immediate = static_cast<std::uint32_t>(number_at(frame, immediate, 4));
    }
    const std::size_t payload = immediate + (with_immediate ? 4 : 0);
    const std::size_t pad = frame[offset::opcode + 1] >> 4 & 3;
    messages.back().insert(messages.back().end(),
                           frame.begin() + static_cast<std::ptrdiff_t>(payload),
                           frame.end() - 4 - static_cast<std::ptrdiff_t>(pad));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].data = messages[i];
    ASSERT_EQ(queue_pair.post(requests[i]), PostResult::posted);
  }
  const std::vector<Bytes> ours = drain(queue_pair);
  ASSERT_EQ(ours.size(), captured.requests.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(without_ip_id(ours[i]), without_ip_id(captured.requests[i])) << "packet " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SoftRoce,
    testing::Values(CaptureRow{"ring3-i32-mtu256-noimm.pcap", 256, 13, false},
                    CaptureRow{"ring4-f32-mtu1024-psnwrap.pcap", 1024, 25, false},
                    CaptureRow{"ring4-f32-mtu1024-loss2pct.pcap", 1024, 54, true},
                    CaptureRow{"ring3-i32-mtu1024-broadcast.pcap", 1024, 9, false}));

} // namespace
} // namespace weir::endpoint::endpoint_test
