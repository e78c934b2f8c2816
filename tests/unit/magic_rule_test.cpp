// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "The magic", between addresses that are not ring neighbours.

#include "conn/magic_rule.hpp"
#include "frame/frame.hpp"
#include "support/frame_builder.hpp"
#include "wire/parse.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::conn::magic_rule_test {
namespace {

using test::Built;
using test::FrameSpec;
using test::InaSpec;

constexpr std::uint64_t kAging = 100;
constexpr std::uint32_t kSessionThere = 0x1234;
constexpr std::uint32_t kNonce = 0xc0ffee;

constexpr std::uint8_t kFirst = 0x06;
constexpr std::uint8_t kMiddle = 0x07;
constexpr std::uint8_t kOnly = 0x0a;
constexpr std::uint8_t kRead = 0x0c;
constexpr std::uint8_t kAck = 0x11;

FrameSpec spec(std::uint8_t opcode, std::uint32_t qp = 0x12) {
  FrameSpec frame;
  frame.source = test::ip("10.0.0.2");
  frame.destination = test::ip("10.0.0.3");
  frame.opcode = opcode;
  frame.qp = qp;
  frame.payload = test::Bytes(64, 0x11);
  return frame;
}

Built plain(std::uint8_t opcode, std::uint32_t qp = 0x12) {
  return build(spec(opcode, qp));
}

Built with_header(const InaSpec& ina, std::uint32_t qp = 0x12) {
  FrameSpec frame = spec(kOnly, qp);
  frame.payload = encode(ina);
  return build(frame);
}

Built hello(std::uint32_t qp = 0x12) {
  return with_header({.session = kNonce, .collective = 1}, qp);
}

/// Another switch's answer to the host that sends these, through a third port.
Built answer() {
  FrameSpec frame = spec(kOnly);
  frame.source = test::ip("10.0.0.1");
  frame.destination = test::ip("10.0.0.2");
  frame.payload =
      encode(InaSpec{.flags = 1, .message = kNonce, .session = kSessionThere, .collective = 1});
  return build(frame);
}

Built data(std::uint32_t qp = 0x12) {
  return with_header({.message = 1, .session = kSessionThere}, qp);
}

Built result() {
  return with_header({.flags = 1, .message = 1, .session = kSessionThere});
}

Built damaged(Built frame) {
  frame.bytes[frame.icrc] ^= 1;
  return frame;
}

struct Step {
  const char* description;
  Built frame;
  bool passes;
};

class Magic : public testing::Test {
 protected:
  std::string answer_to(const Built& built, std::uint16_t port = 0) {
    test::ExactCopy copy(built.bytes);
    frame::Frame frame;
    frame.data = copy.data();
    frame.length = static_cast<std::uint32_t>(built.bytes.size());
    frame.ingress = port;
    frame.packet = wire::parse(copy.bytes());
    const auto reason = rule_.why_not_forwarded(frame, now_);
    return reason ? std::string(name_of(*reason)) : "passes";
  }

  void expect_steps(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      EXPECT_EQ(answer_to(step.frame), step.passes ? "passes" : "unannounced") << step.description;
    }
  }

  std::uint64_t now_ = 0;

 private:
  static constexpr std::uint64_t kWayOut = 1; // everybody is behind port 0

  std::unique_ptr<ForeignSessions> sessions_ = std::make_unique<ForeignSessions>(
      HashKey{}, [](const frame::Frame& /*hello*/, std::uint64_t /*now*/) { return kWayOut; });

 protected:
  MagicRule rule_{
      {.entries = 8, .ports = 1, .aging = kAging, .hash_key = {}, .sessions = sessions_.get()}};
};

TEST_F(Magic, LeavesTheRestAlone) {
  Built malformed = data();
  malformed.bytes.pop_back();
  expect_steps({{"a plain message", plain(kOnly), true},
                {"the middle of one", plain(kMiddle), true},
                {"a READ", plain(kRead), true},
                {"an ACK", plain(kAck), true},
                {"a malformed frame", malformed, true},
                {"a header with a bad ICRC", damaged(data()), true},
                {"which bars nothing", plain(kMiddle), true}});
}

TEST_F(Magic, DataThatNoHelloAnnouncedBarsItsQueuePair) {
  expect_steps({{"data", data(), false},
                {"what follows", plain(kMiddle), false},
                {"another request", plain(kRead), false},
                {"an ACK", plain(kAck), true},
                {"another queue pair", plain(kMiddle, 0x13), true},
                {"a plain message with a bad ICRC", damaged(plain(kFirst)), false},
                {"still", plain(kMiddle), false},
                {"a plain message", plain(kFirst), true},
                {"what follows it", plain(kMiddle), true}});
}

/// Whoever forges the sender's headers at another port opens nothing, and stops nothing.
TEST_F(Magic, EachPortIsJudgedByItself) {
  EXPECT_EQ(answer_to(data()), "unannounced");
  for (const Built& forged : {plain(kFirst), hello(), answer(), data()}) {
    answer_to(forged, 2);
    EXPECT_EQ(answer_to(plain(kMiddle)), "unannounced");
  }
  EXPECT_EQ(answer_to(hello(0x13)), "passes");
  EXPECT_EQ(answer_to(answer()), "passes");
  EXPECT_EQ(answer_to(data(0x13)), "passes");
  answer_to(with_header({.message = 1, .session = kSessionThere + 1}, 0x13), 2);
  EXPECT_EQ(answer_to(plain(kMiddle, 0x13), 2), "unannounced");
  EXPECT_EQ(answer_to(plain(kMiddle, 0x13)), "passes");
}

TEST_F(Magic, TheOtherDirectionIsAnotherConnection) {
  FrameSpec back = spec(kMiddle);
  std::swap(back.source, back.destination);
  expect_steps({{"data", data(), false}, {"the other way", build(back), true}});
}

TEST_F(Magic, AHelloAloneOpensNothing) {
  expect_steps({{"hello", hello(), true},
                {"the middle of who knows what", plain(kMiddle), false},
                {"data", data(), false},
                {"hello again", hello(), true},
                {"data again", data(), false},
                {"hello", hello(), true},
                {"hello", hello(), true},
                {"data", data(), false},
                {"what follows", plain(kMiddle), false}});
}

TEST_F(Magic, AnAnsweredHelloOpensItsConnection) {
  expect_steps({{"hello", hello(), true},
                {"answer", answer(), true},
                {"data on a queue pair without a hello", data(0x14), false},
                {"data", data(), true},
                {"what follows", plain(kMiddle), true},
                {"another queue pair", data(0x13), false},
                {"a hello there", hello(0x13), true},
                {"then", data(0x13), true}});
}

TEST_F(Magic, OneRingsSessionOpensNoOthers) {
  const Built other_session = with_header({.message = 1, .session = kSessionThere + 1});
  const Built other_ring = with_header({.ring = 2, .message = 1, .session = kSessionThere});
  expect_steps({{"hello", hello(), true},
                {"answer", answer(), true},
                {"another session", other_session, false},
                {"hello", hello(), true},
                {"another ring", other_ring, false},
                {"hello", hello(), true},
                {"the one that was answered", data(), true}});
}

TEST_F(Magic, AnotherSwitchesResultPassesOnAnAnnouncedConnection) {
  expect_steps({{"result without a hello", result(), false},
                {"hello", hello(), true},
                {"result", result(), true},
                {"what follows", plain(kMiddle), true}});
}

TEST_F(Magic, QueuePairsAgeWhenSilent) {
  expect_steps({{"hello", hello(), true}, {"answer", answer(), true}, {"data", data(), true}});
  expect_steps({{"data", data(0x13), false}});
  now_ = kAging;
  expect_steps({{"open still", data(), true}, {"barred still", plain(kMiddle, 0x13), false}});
  now_ = 2 * kAging + 1;
  expect_steps({{"not announced any more", data(), false},
                {"barred no longer", plain(kMiddle, 0x13), true}});
}

/// Many more queue pairs than places.
constexpr std::uint32_t kFloodFirst = 0x1000;
constexpr std::uint32_t kFloodEnd = 0x1400;

TEST_F(Magic, AnotherAgingTimeHoldsAtOnce) {
  expect_steps({{"data", data(), false}});
  rule_.set_aging(kAging / 2);
  now_ = kAging / 2 + 1;
  expect_steps({{"barred no longer", plain(kMiddle), true}});
}

TEST_F(Magic, AFloodOfHellosUnbarsAndClosesNothing) {
  expect_steps({{"hello", hello(), true}, {"answer", answer(), true}, {"data", data(), true}});
  expect_steps({{"a header that nobody announced", data(0x13), false}});
  now_ = kAging;
  for (std::uint32_t qp = kFloodFirst; qp < kFloodEnd; ++qp) {
    EXPECT_EQ(answer_to(hello(qp)), "passes");
  }
  expect_steps({{"open still", plain(kMiddle), true},
                {"barred still", plain(kMiddle, 0x13), false},
                {"the newest hello is known", data(kFloodEnd - 1), true}});
}

TEST_F(Magic, AFloodOfHeadersUnbarsNothing) {
  expect_steps({{"data", data(), false}});
  for (std::uint32_t qp = kFloodFirst; qp < kFloodEnd; ++qp) {
    EXPECT_EQ(answer_to(data(qp)), "unannounced");
  }
  expect_steps({{"barred still", plain(kMiddle), false}});
  now_ = kAging + 1;
  EXPECT_EQ(answer_to(data(kFloodEnd)), "unannounced");
  expect_steps({{"what has aged makes room", plain(kMiddle, kFloodEnd), false}});
}

// ---- What comes by another port (docs/security.md, "Tables that packets can fill"). ----

constexpr std::uint16_t kStrangersPort = 1;

TEST_F(Magic, AFloodFromAnotherPortKeepsNobodyOut) {
  for (std::uint32_t qp = kFloodFirst; qp < kFloodEnd; ++qp) {
    EXPECT_EQ(answer_to(data(qp), kStrangersPort), "unannounced");
  }
  EXPECT_TRUE(rule_.remembers_nobody(0)) << "the fast path stays open for other ports";
  expect_steps({{"hello", hello(), true},
                {"answer", answer(), true},
                {"data", data(), true},
                {"what follows", plain(kMiddle), true},
                {"a plain message in several packets", plain(kFirst, 0x13), true},
                {"its middle", plain(kMiddle, 0x13), true}});
}

TEST_F(Magic, AForgedHeaderFromAnotherPortBarsNobody) {
  expect_steps({{"hello", hello(), true}, {"answer", answer(), true}, {"data", data(), true}});
  EXPECT_EQ(answer_to(data(), kStrangersPort), "unannounced");
  EXPECT_EQ(answer_to(plain(kMiddle), kStrangersPort), "unannounced");
  expect_steps({{"what follows", plain(kMiddle), true}});
}

TEST_F(Magic, APlainMessageFromAnotherPortUnbarsNobody) {
  expect_steps({{"data", data(), false}});
  EXPECT_EQ(answer_to(plain(kOnly), kStrangersPort), "passes");
  expect_steps({{"barred still", plain(kMiddle), false}});
}

/// A queue pair that found no place is barred all the same.
TEST_F(Magic, APortWithoutPlacesPassesNoRestOfUnknownMessages) {
  for (std::uint32_t qp = kFloodFirst; qp < kFloodEnd; ++qp) {
    EXPECT_EQ(answer_to(data(qp)), "unannounced");
  }
  for (std::uint32_t qp = kFloodFirst; qp < kFloodEnd; ++qp) {
    EXPECT_EQ(answer_to(plain(kMiddle, qp)), "unannounced") << qp;
  }
  for (std::uint32_t qp = kFloodFirst; qp < kFloodEnd; ++qp) {
    EXPECT_EQ(answer_to(plain(kOnly, qp)), "passes");
  }
  EXPECT_FALSE(rule_.remembers_nobody(0)) << "it forgot one that found no place";
  EXPECT_EQ(answer_to(plain(kMiddle), kStrangersPort), "passes");
  now_ = kAging + 1;
  expect_steps({{"they have aged", plain(kMiddle), true}});
  EXPECT_TRUE(rule_.remembers_nobody(0));
}

} // namespace
} // namespace weir::conn::magic_rule_test
