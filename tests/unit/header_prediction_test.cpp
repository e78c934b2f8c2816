// SPDX-License-Identifier: BSD-3-Clause

/// A prediction must say of every frame what parse() says, whatever came before.

#include "l2/bridge.hpp"
#include "l2/mac_table.hpp"
#include "ring/current_rings.hpp"
#include "stage/receive.hpp"
#include "support/frame_builder.hpp"
#include "wire/header_prediction.hpp"
#include "wire/parse.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace weir::wire::header_prediction_test {
namespace {

using Outcome = HeaderPrediction::Outcome;
using test::build;
using test::Bytes;
using test::ExactCopy;
using test::FrameSpec;
using test::kNetworks;
using test::Network;

constexpr std::uint8_t kWriteFirst = 0x06;
constexpr std::uint8_t kWriteMiddle = 0x07;
constexpr std::uint8_t kWriteLast = 0x08;
constexpr std::uint8_t kAcknowledge = 0x11;

FrameSpec spec_of(Network network, std::uint8_t opcode = kWriteMiddle) {
  FrameSpec spec;
  spec.network = network;
  spec.source = test::ip(network == Network::ipv4 ? "10.0.0.1" : "fd00::1");
  spec.destination = test::ip(network == Network::ipv4 ? "10.0.0.2" : "fd00::2");
  spec.opcode = opcode;
  spec.psn = 0xfedcba;
  spec.payload = Bytes(256, 0x5a);
  return spec;
}

/// Predicts, and compares with parse().
Outcome predicted(HeaderPrediction& prediction, const Bytes& bytes) {
  const ExactCopy copy(bytes);
  Packet packet;
  packet.psn = 0x111111; // of an earlier frame that lay there
  const Outcome outcome = prediction.parse(copy.bytes(), packet);
  EXPECT_EQ(packet, parse(copy.bytes()));
  return outcome;
}

TEST(HeaderPrediction, TheNextPacketIsAsTheLast) {
  for (const Network network : kNetworks) {
    SCOPED_TRACE(test::name_of(network));
    HeaderPrediction prediction;
    FrameSpec spec = spec_of(network);
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::learnt);
    ++spec.psn;
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::as_learnt);
    spec.psn = 0;
    spec.id = 0xffff;
    spec.variant = 0xff;
    spec.ack_request = true;
    spec.udp_checksum = 0x1234;
    spec.payload = Bytes(256, 0xa5);
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::as_learnt);
  }
}

TEST(HeaderPrediction, CongestionMarksChangeNothing) {
  HeaderPrediction prediction;
  FrameSpec spec = spec_of(Network::ipv4);
  predicted(prediction, build(spec).bytes);
  spec.tos = 0x03; // CE (RFC 3168 §5); the header's checksum changes too
  EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::as_learnt);
}

TEST(HeaderPrediction, KnowsEachPlaceInAMessage) {
  for (const Network network : kNetworks) {
    HeaderPrediction prediction;
    for (const Outcome expected : {Outcome::learnt, Outcome::as_learnt}) {
      for (const std::uint8_t opcode : {kWriteFirst, kWriteMiddle, kWriteLast, kAcknowledge}) {
        EXPECT_EQ(predicted(prediction, build(spec_of(network, opcode)).bytes), expected);
      }
    }
  }
}

TEST(HeaderPrediction, KnowsTheShortestPackets) {
  for (const Network network : kNetworks) {
    HeaderPrediction prediction;
    FrameSpec spec = spec_of(network, kAcknowledge);
    spec.payload.clear();
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::learnt);
    ++spec.psn;
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::as_learnt);
  }
}

TEST(HeaderPrediction, LearnsOtherConnectionsInAWhile) {
  HeaderPrediction prediction;
  FrameSpec spec = spec_of(Network::ipv4);
  predicted(prediction, build(spec).bytes);
  for (const std::uint32_t qp : {0x77, 0x78, 0x79}) {
    spec.qp = qp;
    for (int miss = 1; miss < 8; ++miss) {
      EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::parsed);
    }
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::learnt);
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::as_learnt);
  }
}

/// Every header bit matters, or parse() does not read it.
TEST(HeaderPrediction, SeesEveryBit) {
  for (const Network network : kNetworks) {
    for (const std::size_t tags : {0, 1, 2}) {
      FrameSpec spec = spec_of(network);
      spec.tags.resize(tags);
      const Bytes learnt = build(spec).bytes;
      for (std::size_t bit = 0; bit < 8 * 100; ++bit) {
        HeaderPrediction prediction;
        predicted(prediction, learnt);
        Bytes other = learnt;
        other[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
        predicted(prediction, other);
        ASSERT_FALSE(testing::Test::HasFailure())
            << test::name_of(network) << ", " << tags << " tags, bit " << bit;
      }
    }
  }
}

TEST(HeaderPrediction, SeesAnotherLength) {
  const Bytes learnt = build(spec_of(Network::ipv4)).bytes;
  for (std::size_t length = 0; length < 2 * learnt.size(); ++length) {
    HeaderPrediction prediction;
    predicted(prediction, learnt);
    Bytes other = learnt;
    other.resize(length);
    EXPECT_EQ(predicted(prediction, other) == Outcome::as_learnt, length == learnt.size());
  }
}

TEST(HeaderPrediction, LearnsNothingElse) {
  FrameSpec fragment = spec_of(Network::ipv4);
  fragment.fragment = 0x2000;
  FrameSpec foreign = spec_of(Network::ipv4);
  foreign.udp_destination = 53;
  FrameSpec options = spec_of(Network::ipv4);
  options.ip_options = Bytes(40, 0x01); // the BTH ends behind what is compared
  for (const FrameSpec& spec : {fragment, foreign, options}) {
    HeaderPrediction prediction;
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::parsed);
    EXPECT_EQ(predicted(prediction, build(spec).bytes), Outcome::parsed);
  }
}

TEST(HeaderPrediction, FramesOfAllKindsInTurn) {
  std::vector<Bytes> frames{Bytes(60), Bytes(13), Bytes()};
  for (const Network network : kNetworks) {
    for (const std::size_t tags : {0, 1, 3}) {
      for (const std::uint8_t opcode : {0x04, 0x06, 0x07, 0x08, 0x0a, 0x0c, 0x11, 0x64}) {
        FrameSpec spec = spec_of(network, opcode);
        spec.tags.resize(tags);
        frames.push_back(build(spec).bytes);
        spec.qp = 0x77;
        frames.push_back(build(spec).bytes);
      }
    }
  }
  std::mt19937 random(1);
  HeaderPrediction prediction;
  std::size_t as_learnt = 0;
  for (int i = 0; i < 20'000; ++i) {
    as_learnt += predicted(prediction, frames[random() % frames.size()]) == Outcome::as_learnt;
  }
  EXPECT_GT(as_learnt, 100u) << "else the test shows nothing";
}

/// The same frame by the same port: a stranger's before its ring is there, a neighbour's
/// afterwards.
TEST(HeaderPrediction, ReceiveLooksForThePairInTheRingsOfTheMoment) {
  l2::MacTable stations(64, 1000);
  l2::Bridge bridge(stations, 2);
  frame::FrameCounters counters;
  ring::CurrentRings rings{ring::RingSet({})};
  stage::Receive receive(rings, bridge, counters);
  auto pair_of_next = [&, psn = 0u]() mutable {
    FrameSpec spec = spec_of(Network::ipv4);
    spec.psn = ++psn;
    Bytes bytes = build(spec).bytes;
    frame::Frame frame;
    frame.data = bytes.data();
    frame.length = static_cast<std::uint32_t>(bytes.size());
    frame.ingress = 1;
    receive.accept(frame, {});
    return frame.pair;
  };
  EXPECT_EQ(pair_of_next(), 0);
  EXPECT_EQ(pair_of_next(), 0);
  const FrameSpec spec = spec_of(Network::ipv4);
  const ring::RingSpec ring{.id = 1,
                            .window = 1,
                            .max_message_bytes = 4096,
                            .members = {{spec.source, {}}, {spec.destination, {}}}};
  rings.swap(std::make_shared<const ring::RingSet>(rings->with(ring)));
  const std::uint16_t pair = rings->pair_of(spec.source, spec.destination);
  ASSERT_NE(pair, 0);
  EXPECT_EQ(pair_of_next(), pair);
  EXPECT_EQ(pair_of_next(), pair);
}

} // namespace
} // namespace weir::wire::header_prediction_test
