// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §2 and §3: the verdict on a packet between ring neighbours.

#include "classifier_fixture.hpp"

#include <functional>

namespace weir::conn::classify_test {
namespace {

using test::Built;
using test::Bytes;
using test::FrameSpec;
using test::InaSpec;
using test::kSession;
using test::RingJob;

TEST(Classifier, AdmittedConnectionsContribute) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto message = job.message(0, 1, three_packets());
  expect_steps(fixture, {{"FIRST", message[0], "0.0 message 1 packet 0"},
                         {"MIDDLE", message[1], "0.0 message 1 packet 1"},
                         {"LAST", message[2], "0.0 message 1 packet 2"},
                         {"go-back-N into the middle", message[1], "0.0 message 1 packet 1"},
                         {"and from the start", message[0], "0.0 message 1 packet 0"},
                         {"another QP", with_qp(message[0], 0x999), "drop no_connection"},
                         {"its middle", with_qp(message[1], 0x999), "drop unclassified"}});
  const ChildStatus status = fixture.incarnations().status_of(0, 0);
  EXPECT_TRUE(status.connected);
  EXPECT_EQ(status.qp, job.qp_of(0));
  EXPECT_EQ(status.newest_message, 1u);
  EXPECT_EQ(status.packets, 6u) << "the hello and five more";
}

TEST(Classifier, EveryRankAndEncapsulationIsAdmitted) {
  for (const test::Network network : test::kNetworks) {
    for (const test::Verb verb : {test::Verb::send, test::Verb::write_immediate}) {
      RingJob job({.world = 5, .network = network, .verb = verb});
      ClassifierFixture fixture({job.ring()});
      fixture.admit(job);
      for (std::uint16_t rank = 0; rank < 5; ++rank) {
        const auto packets = job.message(rank, 1, three_packets());
        for (std::size_t k = 0; k < packets.size(); ++k) {
          EXPECT_EQ(fixture.classify(packets[k]), fmt::format("0.{} message 1 packet {}", rank, k));
        }
      }
    }
  }
}

TEST(Classifier, NeverGuesses) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  expect_steps(
      fixture,
      {{"the middle of who knows what", plain(job, 0, kMiddle), "drop unclassified"},
       {"its end", plain(job, 0, kLast), "drop unclassified"},
       {"a SEND's middle", plain(job, 0, 0x01), "drop unclassified"},
       {"a plain message begins", plain(job, 0, kFirst), "forward"},
       {"its middle", plain(job, 0, kMiddle), "forward"},
       {"its end", plain(job, 0, kLast), "forward"},
       {"other QPs stay in the dark", with_qp(plain(job, 0, kMiddle), 0x999), "drop unclassified"},
       {"a plain ONLY will do", plain(job, 1, kOnly), "forward"},
       {"then", plain(job, 1, kMiddle), "forward"}});
  fixture.now = kAging + 1;
  expect_steps(fixture, {{"forgotten", plain(job, 0, kMiddle), "drop unclassified"}});
}

TEST(Classifier, APlainQpBecomesARingsAndStaysTheRings) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  const auto message = job.message(0, 1, three_packets());
  expect_steps(fixture, {{"plain at first", plain(job, 0, kOnly), "forward"},
                         {"its middle", plain(job, 0, kMiddle), "forward"},
                         {"a ring's message finds it plain", message[0], "drop no_connection"},
                         {"its rest is raw data", message[1], "drop unannounced"},
                         {"plain again", plain(job, 0, kOnly), "forward"}});
  fixture.admit(job);
  expect_steps(fixture,
               {{"no longer", plain(job, 0, kMiddle), "gap 0.0"},
                {"the ring's message", message[0], "0.0 message 1 packet 0"},
                {"a plain message in between", plain(job, 0, kFirst), "interleaves 0.0"},
                {"and changes nothing", message[1], "0.0 message 1 packet 1"},
                {"its own middle is no message of the ring", plain(job, 0, kMiddle), "gap 0.0"}});
}

TEST(Classifier, AnotherSessionIsAnotherSwitch) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto message = job.message(0, 1, three_packets());
  expect_steps(fixture, {{"an old session", poked(message[0], test::kInaSessionAt, kSession + 1),
                          "drop wrong_session"},
                         {"none", poked(message[0], test::kInaSessionAt, 0), "drop wrong_session"},
                         {"nothing was entered", message[1], "gap 0.0"},
                         {"this one's", message[0], "0.0 message 1 packet 0"}});
}

TEST(Classifier, AnotherAgingTimeHoldsForWhatComesThen) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  fixture.set_aging(kAging / 2);
  expect_steps(fixture, {{"the ring uses it", plain(job, 0, kOnly), "interleaves 0.0"},
                         {"a stranger", with_qp(plain(job, 1, kOnly), 0x999), "forward"}});
  fixture.now += kAging / 2 + 1;
  expect_steps(fixture,
               {{"silent for so long", plain(job, 0, kOnly), "forward"},
                {"forgotten", with_qp(plain(job, 1, kMiddle), 0x999), "drop unclassified"}});
}

TEST(Classifier, WhatABadIcrcSaysIsNotBelieved) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  const Built hello = job.hello(0);
  const auto message = job.message(0, 1, three_packets());
  expect_steps(fixture,
               {{"hello", damaged(hello, hello.payload + test::kInaRankAt), "drop bad_icrc"},
                {"plain", damaged(plain(job, 0, kOnly), 60), "drop bad_icrc"},
                {"made nothing plain", plain(job, 0, kMiddle), "drop unclassified"}});
  EXPECT_EQ(fixture.incarnations().waiting_hellos(), 0u);
  fixture.admit(job);
  expect_steps(fixture, {{"FIRST", damaged(message[0], message[0].payload + 100), "drop bad_icrc"},
                         {"entered nothing", message[1], "gap 0.0"},
                         {"good FIRST", message[0], "0.0 message 1 packet 0"}});
}

TEST(Classifier, TheWindowAndTheHistoryOfAConnection) { // N = 2
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  std::vector<std::vector<Built>> m;
  for (std::uint32_t id = 0; id < 12; ++id) {
    m.push_back(job.message(0, id, three_packets()));
  }
  const Built moved = with_psn(m[1][0], psn_of(m[1][0]) ^ 0x40);
  expect_steps(fixture, {{"M+N+1", m[3][0], "drop window_exceeded"},
                         {"the hello again", job.hello(0), "0.0 message 0 packet 0"},
                         {"M+1", m[1][0], "0.0 message 1 packet 0"},
                         {"at another PSN", moved, "drop history_conflict"},
                         {"M+N, over a hole", m[3][0], "0.0 message 3 packet 0"},
                         {"inside the hole", m[2][1], "gap 0.0"},
                         {"the hole's FIRST", m[2][0], "0.0 message 2 packet 0"},
                         {"inside", m[2][1], "0.0 message 2 packet 1"},
                         {"onwards", m[5][0], "0.0 message 5 packet 0"},
                         {"M-2N, from its start", m[1][0], "drop stale_repeat"},
                         {"M-2N, from its middle", m[1][1], "drop stale_repeat"},
                         {"M-2N, its end", m[1][2], "drop stale_repeat"},
                         {"the hello", job.hello(0), "drop stale_repeat"},
                         {"M-2N+1", m[2][2], "0.0 message 2 packet 2"},
                         {"the hole at 4", m[4][2], "gap 0.0"}});
}

TEST(Classifier, EveryPacketIsAsLongAsItsPlaceSays) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto message = job.message(0, 1, three_packets());
  ASSERT_EQ(fixture.classify(message[0]), "0.0 message 1 packet 0");
  const std::uint32_t psn = (job.spec().first_psn + 1) & 0xffffff;
  const auto at = [&](std::uint8_t opcode, std::uint32_t packet, std::size_t bytes) {
    FrameSpec spec = job.frame_of(0);
    spec.opcode = opcode;
    spec.psn = psn + packet;
    spec.payload = Bytes(bytes, 1);
    return build(spec);
  };
  expect_steps(fixture,
               {{"a middle of less than an MTU", at(kMiddle, 1, 252), "drop length_mismatch"},
                {"of more", at(kMiddle, 1, 260), "drop length_mismatch"},
                {"a LAST in the middle", at(kLast, 1, 256), "drop length_mismatch"},
                {"a MIDDLE at the end", at(kMiddle, 2, 248), "drop length_mismatch"},
                {"a LAST too short", at(kLast, 2, 244), "drop length_mismatch"},
                {"a LAST too long", at(kLast, 2, 256), "drop length_mismatch"},
                {"a LAST of an odd length", at(kLast, 2, 247), "drop length_mismatch"},
                {"right", at(kMiddle, 1, 256), "0.0 message 1 packet 1"},
                {"right, with immediate", at(0x09, 2, 248), "0.0 message 1 packet 2"},
                {"right", at(kLast, 2, 248), "0.0 message 1 packet 2"}});
}

TEST(Classifier, NamesWhatIsMalformed) {
  RingJob job({.world = 3});
  RingJob six({.ring = 2, .world = 3, .network = test::Network::ipv6, .network_id = 6});
  ClassifierFixture fixture({job.ring(), six.ring()});
  fixture.admit(job);
  FrameSpec fragment = job.frame_of(0);
  fragment.fragment = 0x2000;
  FrameSpec extension = six.frame_of(0);
  extension.next = 60;
  extension.ip_extensions = {17, 0, 1, 4, 0, 0, 0, 0};
  FrameSpec version = job.frame_of(0);
  version.transport_version = 2;
  Built cut = job.hello(0);
  cut.bytes.pop_back();
  expect_steps(fixture, {{"fragment", build(fragment), "drop fragment"},
                         {"extension headers", build(extension), "drop ipv6_extension"},
                         {"transport version", build(version), "drop transport_version"},
                         {"length", cut, "drop length_mismatch"}});
}

// ---- Requests that cannot be aggregated. ----

struct RequestRow {
  const char* description;
  std::uint8_t opcode;
  const char* live;
  const char* dead;
  const char* plain;
  const char* unknown;
};

const std::vector<RequestRow> kRequests{
    {"SEND LAST with Invalidate", 0x16, "drop unsupported_request", "drop dead_connection",
     "forward", "drop unclassified"},
    {"SEND ONLY with Invalidate", 0x17, "drop unsupported_request", "drop dead_connection",
     "forward", "forward"},
    {"READ", 0x0c, "drop unsupported_request", "drop dead_connection", "forward", "forward"},
    {"CmpSwap", 0x13, "drop unsupported_request", "drop dead_connection", "forward", "forward"},
    {"FetchAdd", 0x14, "drop unsupported_request", "drop dead_connection", "forward", "forward"},
    {"reserved", 0x1f, "drop unsupported_request", "drop dead_connection", "forward", "forward"},
    {"UC WRITE ONLY", 0x2a, "drop unsupported_request", "drop dead_connection", "forward",
     "forward"},
    {"READ response", 0x0d, "forward", "forward", "forward", "forward"},
    {"ACK", 0x11, "forward", "forward", "forward", "forward"},
    {"atomic ACK", 0x12, "forward", "forward", "forward", "forward"},
    {"CNP", 0x81, "forward", "forward", "forward", "forward"},
};

TEST(Classifier, RequestsThatCannotBeAggregated) {
  for (const RequestRow& row : kRequests) {
    SCOPED_TRACE(row.description);
    RingJob job({.world = 3});
    ClassifierFixture fixture({job.ring()});
    const Built request = plain(job, 0, row.opcode);
    expect_steps(fixture,
                 {{"unknown QP", request, row.unknown},
                  {"nothing is learnt from it", plain(job, 0, kMiddle), "drop unclassified"},
                  {"make it plain", plain(job, 0, kOnly), "forward"},
                  {"plain QP", request, row.plain}});
    fixture.admit(job);
    EXPECT_EQ(fixture.classify(request), row.live);
    fixture.incarnations().reset(0);
    EXPECT_EQ(fixture.classify(request), row.dead);
  }
}

// ---- What a member may not say. ----

struct Unacceptable {
  const char* description;
  std::function<void(InaSpec&, FrameSpec&, Bytes&)> change;
  const char* expected;
};

/// Turns a message into a hello: message 0, without data.
void hello(InaSpec& ina, Bytes& data) {
  ina.collective = 1;
  ina.message = 0;
  ina.length = 0;
  data.clear();
}

void without_data(InaSpec& ina, Bytes& data) {
  ina.length = 0;
  data.clear();
}

/// The same number of packets, other bytes.
void with_data(InaSpec& ina, Bytes& data, std::uint32_t bytes) {
  ina.length = bytes;
  data.resize(bytes);
}

/// The first packet of a message of two.
void first_of_two(InaSpec& ina, FrameSpec& frame, Bytes& data) {
  ina.length = 300;
  frame.opcode = kFirst;
  frame.dma_length = 340;
  data.resize(256 - 40);
}

const std::vector<Unacceptable> kFlags{
    {"nothing wrong", [](InaSpec&, FrameSpec&, Bytes&) {}, "0.0 message 1 packet 0"},
    {"RESULT", [](InaSpec& i, FrameSpec&, Bytes&) { i.flags = 1; }, "drop result_flag"},
    {"PARTIAL", [](InaSpec& i, FrameSpec&, Bytes&) { i.flags = 2; }, "drop partial_flag"},
    {"both", [](InaSpec& i, FrameSpec&, Bytes&) { i.flags = 3; }, "drop result_flag"},
    {"the flag beside them", [](InaSpec& i, FrameSpec&, Bytes&) { i.flags = 4; },
     "drop reserved_bits"},
    {"the last flag", [](InaSpec& i, FrameSpec&, Bytes&) { i.flags = 0x80; }, "drop reserved_bits"},
};

const std::vector<Unacceptable> kCollectiveFields{
    {"collective 4", [](InaSpec& i, FrameSpec&, Bytes&) { i.collective = 4; },
     "drop unsupported_collective"},
    {"collective 255", [](InaSpec& i, FrameSpec&, Bytes&) { i.collective = 255; },
     "drop unsupported_collective"},
    {"the first that is no operation",
     [](InaSpec& i, FrameSpec&, Bytes&) { i.operation = kOperations; }, "drop unsupported_pair"},
    {"a user's operation", [](InaSpec& i, FrameSpec&, Bytes&) { i.operation = 128; },
     "drop unsupported_pair"},
    {"type 14", [](InaSpec& i, FrameSpec&, Bytes&) { i.data_type = 14; }, "drop unsupported_pair"},
    {"type 255", [](InaSpec& i, FrameSpec&, Bytes&) { i.data_type = 255; },
     "drop unsupported_pair"},
    {"xor of floats",
     [](InaSpec& i, FrameSpec&, Bytes&) {
       i.operation = 6;
       i.data_type = 0;
     },
     "drop unsupported_pair"},
    {"an all-reduce with a root", [](InaSpec& i, FrameSpec&, Bytes&) { i.root = 1; },
     "drop bad_root"},
    {"a broadcast", [](InaSpec& i, FrameSpec&, Bytes&) { i.collective = 2; },
     "0.0 message 1 packet 0"},
    {"from the last rank",
     [](InaSpec& i, FrameSpec&, Bytes&) {
       i.collective = 2;
       i.root = 2;
     },
     "0.0 message 1 packet 0"},
    {"from a rank past the last",
     [](InaSpec& i, FrameSpec&, Bytes&) {
       i.collective = 2;
       i.root = 3;
     },
     "drop bad_root"},
    {"a broadcast of floats, whatever the operation",
     [](InaSpec& i, FrameSpec&, Bytes&) {
       i.collective = 2;
       i.operation = 6;
       i.data_type = 0;
     },
     "0.0 message 1 packet 0"},
    {"a broadcast of an unknown type",
     [](InaSpec& i, FrameSpec&, Bytes&) {
       i.collective = 2;
       i.data_type = 14;
     },
     "drop unsupported_pair"},
    {"a broadcast of 15 bytes of i32",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.collective = 2;
       with_data(i, d, 15);
     },
     "drop partial_element"},
    {"a barrier",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.collective = 3;
       i.operation = 99;
       without_data(i, d);
     },
     "0.0 message 1 packet 0"},
    {"a barrier with data", [](InaSpec& i, FrameSpec&, Bytes&) { i.collective = 3; },
     "drop barrier_data"},
    {"a barrier of an unknown type",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.collective = 3;
       i.data_type = 14;
       without_data(i, d);
     },
     "drop unsupported_pair"},
    {"a barrier with a root",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.collective = 3;
       i.root = 1;
       without_data(i, d);
     },
     "drop bad_root"},
};

const std::vector<Unacceptable> kHelloFields{
    {"a hello of another nonce", [](InaSpec& i, FrameSpec&, Bytes& d) { hello(i, d); },
     "waits 0.0"},
    {"a hello with an id",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       hello(i, d);
       i.message = 1;
     },
     "drop bad_hello"},
    {"a hello with data",
     [](InaSpec& i, FrameSpec&, Bytes&) {
       i.collective = 1;
       i.message = 0;
     },
     "drop bad_hello"},
    {"a hello with a root",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       hello(i, d);
       i.root = 1;
     },
     "drop bad_root"},
    {"a hello of an unknown operation",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       hello(i, d);
       i.operation = kOperations;
     },
     "drop unsupported_pair"},
    {"nonce 0",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       hello(i, d);
       i.session = 0;
     },
     "drop bad_nonce"},
    {"the longest ACK timeout",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       hello(i, d);
       i.ack_timeout = 31;
     },
     "waits 0.0"},
    {"a longer one",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       hello(i, d);
       i.ack_timeout = 32;
     },
     "drop bad_ack_timeout"},
    {"ACK timeout 255",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       hello(i, d);
       i.ack_timeout = 255;
     },
     "drop bad_ack_timeout"},
    {"an older epoch's hello",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       hello(i, d);
       i.epoch = 4;
     },
     "drop old_epoch"},
};

const std::vector<Unacceptable> kNames{
    {"another session", [](InaSpec& i, FrameSpec&, Bytes&) { i.session ^= 1; },
     "drop wrong_session"},
    {"an older epoch", [](InaSpec& i, FrameSpec&, Bytes&) { i.epoch = 4; }, "drop wrong_epoch"},
    {"a newer epoch", [](InaSpec& i, FrameSpec&, Bytes&) { i.epoch = 6; }, "drop wrong_epoch"},
    {"the newest epoch there is", [](InaSpec& i, FrameSpec&, Bytes&) { i.epoch = 0xffffffff; },
     "drop wrong_epoch"},
    {"no magic", [](InaSpec& i, FrameSpec&, Bytes&) { i.magic = 0x57454953; }, "interleaves 0.0"},
    {"version 1", [](InaSpec& i, FrameSpec&, Bytes&) { i.version = 1; }, "drop unannounced"},
    {"another ring", [](InaSpec& i, FrameSpec&, Bytes&) { i.ring = 3; }, "drop unannounced"},
};

const std::vector<Unacceptable> kLengths{
    {"more than the ring's messages hold",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       first_of_two(i, f, d);
       i.length = 1024 - 40 + 4;
     },
     "drop message_too_long"},
    {"2^32 - 1 bytes",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       first_of_two(i, f, d);
       i.length = 0xffffffff;
     },
     "drop message_too_long"},
    {"as much as they hold",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       first_of_two(i, f, d);
       i.length = 1024 - 40;
       f.dma_length = 1024;
     },
     "0.0 message 1 packet 0"},
    {"15 bytes of i32", [](InaSpec& i, FrameSpec&, Bytes& d) { with_data(i, d, 15); },
     "drop partial_element"},
    {"20 bytes of f64",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.data_type = 4;
       with_data(i, d, 20);
     },
     "drop partial_element"},
    {"15 bytes of u8",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.data_type = 6;
       with_data(i, d, 15);
     },
     "0.0 message 1 packet 0"},
    {"no data", [](InaSpec& i, FrameSpec&, Bytes& d) { without_data(i, d); },
     "0.0 message 1 packet 0"},
    {"less data than it says", [](InaSpec&, FrameSpec&, Bytes& d) { d.resize(12); },
     "drop length_mismatch"},
    {"more data than it says", [](InaSpec&, FrameSpec&, Bytes& d) { d.resize(20); },
     "drop length_mismatch"},
    {"RETH says less", [](InaSpec&, FrameSpec& f, Bytes&) { f.dma_length = 52; },
     "drop length_mismatch"},
    {"RETH says more", [](InaSpec&, FrameSpec& f, Bytes&) { f.dma_length = 60; },
     "drop length_mismatch"},
    {"a FIRST of one packet", [](InaSpec&, FrameSpec& f, Bytes&) { f.opcode = kFirst; },
     "drop length_mismatch"},
    {"an ONLY of two packets",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       first_of_two(i, f, d);
       f.opcode = kOnly;
     },
     "drop length_mismatch"},
    {"a FIRST that is not full",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       first_of_two(i, f, d);
       d.resize(252 - 40);
     },
     "drop length_mismatch"},
    {"a FIRST over the path MTU",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       first_of_two(i, f, d);
       d.resize(260 - 40);
     },
     "drop length_mismatch"},
    {"a SEND has no RETH to disagree", [](InaSpec&, FrameSpec& f, Bytes&) { f.opcode = 0x04; },
     "0.0 message 1 packet 0"},
};

void expect_answers(const std::vector<Unacceptable>& rows) {
  for (const Unacceptable& row : rows) {
    RingJob job({.world = 3, .epoch = 5});
    ClassifierFixture fixture({job.ring()});
    fixture.admit(job);
    InaSpec ina = job.ina_of(0, 1, 16);
    FrameSpec frame = job.frame_of(0);
    frame.opcode = kOnly;
    frame.psn = job.spec().first_psn + 1;
    Bytes payload(16, 7);
    row.change(ina, frame, payload);
    frame.payload = test::encode(ina);
    frame.payload.insert(frame.payload.end(), payload.begin(), payload.end());
    EXPECT_EQ(fixture.classify(build(frame)), row.expected) << row.description;
  }
}

TEST(Classifier, NamesFlagsThatAMemberMayNotSet) {
  expect_answers(kFlags);
}

TEST(Classifier, NamesCollectivesThatMakeNoSense) {
  expect_answers(kCollectiveFields);
}

TEST(Classifier, NamesHellosThatMakeNoSense) {
  expect_answers(kHelloFields);
}

TEST(Classifier, NamesMessagesOfOtherRuns) {
  expect_answers(kNames);
}

TEST(Classifier, NamesLengthsThatDoNotFit) {
  expect_answers(kLengths);
}

// ---- Many queue pairs. ----

/// Neighbours may open any number of QPs; the ring's own find places in the table and keep them.
TEST(Classifier, PlainQpsDoNotCrowdOutARing) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()}, 64);
  const auto flood = [&](std::uint32_t from) {
    for (std::uint32_t qp = from; qp < from + 5000; ++qp) {
      ASSERT_EQ(fixture.classify(with_qp(plain(job, qp % 2, kOnly), qp)), "forward");
    }
  };
  flood(0x10000);
  fixture.admit(job);
  ++fixture.now;
  flood(0x20000);
  EXPECT_LE(fixture.incarnations().connections().size(), 2 * 64u + 2)
      << "places of plain ones, and 2";
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    const auto message = job.message(rank, 1, three_packets());
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(fixture.classify(message[k]), fmt::format("0.{} message 1 packet {}", rank, k));
    }
  }
}

TEST(Classifier, WaitingHellosOnManyQpsDoNotCrowdOutARing) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const Built forged = poked(with_qp(job.hello(0), 0x10000 + i), test::kInaSessionAt, i + 1);
    ASSERT_TRUE(fixture.classify(forged).starts_with("waits 0.0")) << i;
  }
  EXPECT_EQ(fixture.classify(job.message(0, 1, three_packets())[0]), "0.0 message 1 packet 0");
  job.restart(2);
  fixture.admit(job);
  EXPECT_EQ(fixture.classify(job.message(0, 1, three_packets())[0]), "0.0 message 1 packet 0");
}

} // namespace
} // namespace weir::conn::classify_test
