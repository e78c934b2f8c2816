// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "The magic": hosts whose hello another switch has answered.

#include "conn/foreign_sessions.hpp"
#include "support/frame_builder.hpp"
#include "wire/parse.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::conn::foreign_sessions_test {
namespace {

constexpr std::uint32_t kRing = 9;
constexpr std::uint32_t kEpoch = 5;
constexpr std::uint32_t kNonce = 0xc0ffee;
constexpr std::uint32_t kSessionThere = 0x1234;

constexpr std::uint16_t kHostsPort = 1;
constexpr std::uint16_t kOtherSwitch = 2; // the port behind which all others are
constexpr std::uint16_t kStrangersPort = 3;
constexpr std::uint64_t kAllPorts = 0b1111;

constexpr std::uint64_t one(std::uint16_t port) {
  return std::uint64_t{1} << port;
}

/// A packet between two hosts.
struct Sent : frame::Frame {
  Sent(std::string_view source, std::string_view destination, std::uint16_t port)
      : bytes_(
            test::build({.source = test::ip(source), .destination = test::ip(destination)}).bytes) {
    data = bytes_.data();
    length = static_cast<std::uint32_t>(bytes_.size());
    packet = wire::parse(bytes_);
    ingress = port;
  }

 private:
  test::Bytes bytes_;
};

constexpr std::string_view kHost = "10.0.0.2";
const Sent kHello(kHost, "10.0.0.3", kHostsPort);
const Sent kAnswer("10.0.0.1", kHost, kOtherSwitch);
const Sent kData(kHost, "10.0.0.3", kHostsPort);

/// What the fields of headers say.
struct Said {
  std::uint32_t ring = kRing;
  std::uint32_t epoch = kEpoch;
  std::uint32_t nonce = kNonce;
  std::uint32_t session = kSessionThere;
};

wire::InaHeader hello(const Said& said = {}) {
  wire::InaHeader ina{};
  ina.ring_id = wire::be32(said.ring);
  ina.epoch = wire::be32(said.epoch);
  ina.session = wire::be32(said.nonce);
  return ina;
}

wire::InaHeader result(const Said& said = {}) {
  wire::InaHeader ina{};
  ina.flags = kInaFlagResult;
  ina.ring_id = wire::be32(said.ring);
  ina.epoch = wire::be32(said.epoch);
  ina.message_id = wire::be32(said.nonce);
  ina.session = wire::be32(said.session);
  return ina;
}

wire::InaHeader message(const Said& said = {}) {
  wire::InaHeader ina{};
  ina.ring_id = wire::be32(said.ring);
  ina.session = wire::be32(said.session);
  return ina;
}

class ForeignSessionsTest : public testing::Test {
 protected:
  std::uint64_t ways_out(const frame::Frame& frame) const {
    return frame.destination() == test::ip(kHost) ? one(kHostsPort) : ways_to_others_;
  }

  std::uint64_t ways_to_others_ = one(kOtherSwitch);
  std::uint64_t now_ = 0;
  ForeignSessions sessions_{
      {}, [this](const frame::Frame& frame, std::uint64_t /*now*/) { return ways_out(frame); }};
};

TEST_F(ForeignSessionsTest, TheAnsweredHostMaySpeakOfThatRingInThatSession) {
  sessions_.note(kHello, hello(), now_);
  EXPECT_FALSE(sessions_.has(kData, message()));
  sessions_.note(kAnswer, result(), now_);
  EXPECT_TRUE(sessions_.has(kData, message()));
}

TEST_F(ForeignSessionsTest, NobodyElseMay) {
  sessions_.note(kHello, hello(), now_);
  sessions_.note(kAnswer, result(), now_);
  EXPECT_FALSE(sessions_.has(kData, message({.ring = kRing + 1})));
  EXPECT_FALSE(sessions_.has(kData, message({.session = kSessionThere + 1})));
  EXPECT_FALSE(sessions_.has(kData, message({.session = 0})));
  EXPECT_FALSE(sessions_.has(Sent("10.0.0.1", kHost, kHostsPort), message()))
      << "the host that the answer came from";
  EXPECT_FALSE(sessions_.has(Sent("10.0.0.3", "10.0.0.4", kHostsPort), message()));
  EXPECT_FALSE(sessions_.has(Sent(kHost, "10.0.0.3", kStrangersPort), message()))
      << "in its name, by another port";
}

struct ForgedRow {
  const char* description;
  std::uint16_t port;
  Said said;
};

TEST_F(ForeignSessionsTest, OnlyAnAnswerToTheHelloCounts) {
  sessions_.note(kHello, hello(), now_);
  const ForgedRow rows[] = {{"by another port than the hello's", kStrangersPort, {}},
                            {"by the host's own port", kHostsPort, {}},
                            {"another nonce", kOtherSwitch, {.nonce = kNonce + 1}},
                            {"another epoch", kOtherSwitch, {.epoch = kEpoch + 1}},
                            {"another ring", kOtherSwitch, {.ring = kRing + 1}}};
  for (const ForgedRow& row : rows) {
    sessions_.note(Sent("10.0.0.1", kHost, row.port), result(row.said), now_);
    EXPECT_FALSE(sessions_.has(kData, message(row.said))) << row.description;
  }
  sessions_.note(Sent("10.0.0.1", "10.0.0.9", kOtherSwitch), result(), now_);
  EXPECT_FALSE(sessions_.has(Sent("10.0.0.9", "10.0.0.3", kOtherSwitch), message()))
      << "to a host that said no hello";
}

TEST_F(ForeignSessionsTest, AHelloByAnotherPortPreparesNothing) {
  sessions_.note(Sent(kHost, "10.0.0.3", kStrangersPort), hello(), now_);
  sessions_.note(kAnswer, result(), now_);
  EXPECT_FALSE(sessions_.has(kData, message()));
}

TEST_F(ForeignSessionsTest, AFloodedHelloMayBeAnsweredByAnyPort) {
  ways_to_others_ = kAllPorts & ~one(kHostsPort);
  sessions_.note(kHello, hello(), now_);
  sessions_.note(kAnswer, result(), now_);
  EXPECT_TRUE(sessions_.has(kData, message()));
}

TEST_F(ForeignSessionsTest, AHelloThatGoesNowherePreparesNothing) {
  ways_to_others_ = 0;
  sessions_.note(kHello, hello(), now_);
  sessions_.note(kAnswer, result(), now_);
  EXPECT_FALSE(sessions_.has(kData, message()));
}

// ---- Floods. ----

constexpr std::uint32_t kMany = 20'000;

/// Before hellos and answers had places by port, these 98 bytes each ended other switches' jobs.
TEST_F(ForeignSessionsTest, WhatComesByAnotherPortDisplacesNothing) {
  sessions_.note(kHello, hello(), now_);
  const Sent forged_hello(kHost, "10.0.0.3", kStrangersPort);
  const Sent forged_answer("10.0.0.1", kHost, kStrangersPort);
  for (std::uint32_t number = 1; number <= kMany; ++number) {
    now_ += 1;
    sessions_.note(forged_hello, hello({.ring = number, .nonce = number}), now_);
    sessions_.note(forged_answer, result({.ring = number, .nonce = number}), now_);
  }
  sessions_.note(kAnswer, result(), now_);
  for (std::uint32_t number = 1; number <= kMany; ++number) {
    now_ += 1;
    sessions_.note(forged_hello, hello({.nonce = number}), now_);
    sessions_.note(forged_answer, result({.nonce = number, .session = number}), now_);
  }
  EXPECT_TRUE(sessions_.has(kData, message()));
}

/// With any number of sessions of one port, the latest are known, and many others.
TEST_F(ForeignSessionsTest, OfOnePortTheOldestMakeRoom) {
  std::uint32_t known = 0;
  for (std::uint32_t run = 1; run <= kMany; ++run) {
    now_ += 1000;
    sessions_.note(kHello, hello({.nonce = run}), now_);
    sessions_.note(kAnswer, result({.nonce = run, .session = run}), now_);
    ASSERT_TRUE(sessions_.has(kData, message({.session = run})));
    if (run > 20) {
      ASSERT_TRUE(sessions_.has(kData, message({.session = run - 20}))) << run;
    }
  }
  for (std::uint32_t run = 1; run <= kMany; ++run) {
    known += sessions_.has(kData, message({.session = run})) ? 1 : 0;
  }
  EXPECT_EQ(known, PortMemory::kPlaces);
}

} // namespace
} // namespace weir::conn::foreign_sessions_test
