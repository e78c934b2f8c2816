// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "The magic": hosts whose hello another switch has answered.

#include "conn/foreign_sessions.hpp"
#include "support/frame_builder.hpp"
#include "wire/parse.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace weir::conn {
namespace {

constexpr std::uint32_t kRing = 9;
constexpr std::uint32_t kSessionThere = 0x1234;

/// A packet between two hosts.
struct Sent : wire::ParsedBytes {
  Sent(const char* source, const char* destination)
      : bytes_(
            test::build({.source = test::ip(source), .destination = test::ip(destination)}).bytes) {
    data = bytes_.data();
    length = static_cast<std::uint32_t>(bytes_.size());
    packet = wire::parse(bytes_);
  }

 private:
  test::Bytes bytes_;
};

wire::InaHeader header(std::uint32_t ring, std::uint32_t session) {
  wire::InaHeader ina{};
  ina.ring_id = wire::be32(ring);
  ina.session = wire::be32(session);
  return ina;
}

const Sent kAnswer("10.0.0.1", "10.0.0.2");
const Sent kData("10.0.0.2", "10.0.0.3");

TEST(ForeignSessions, TheAnsweredHostMaySpeakOfThatRingInThatSession) {
  const auto sessions = std::make_unique<ForeignSessions>(HashKey{});
  EXPECT_FALSE(sessions->has(kData, header(kRing, kSessionThere)));
  sessions->note(kAnswer, header(kRing, kSessionThere));
  EXPECT_TRUE(sessions->has(kData, header(kRing, kSessionThere)));
}

TEST(ForeignSessions, NobodyElseMay) {
  const auto sessions = std::make_unique<ForeignSessions>(HashKey{});
  sessions->note(kAnswer, header(kRing, kSessionThere));
  EXPECT_FALSE(sessions->has(kData, header(kRing + 1, kSessionThere)));
  EXPECT_FALSE(sessions->has(kData, header(kRing, kSessionThere + 1)));
  EXPECT_FALSE(sessions->has(kData, header(kRing, 0)));
  EXPECT_FALSE(sessions->has(Sent("10.0.0.1", "10.0.0.2"), header(kRing, kSessionThere)))
      << "the host that the answer came from";
  EXPECT_FALSE(sessions->has(Sent("10.0.0.3", "10.0.0.4"), header(kRing, kSessionThere)));
}

/// With any number of sessions, the latest is known.
TEST(ForeignSessions, TheLaterOfTwoThatMeetStays) {
  const auto sessions = std::make_unique<ForeignSessions>(HashKey{});
  std::uint32_t known = 0;
  constexpr std::uint32_t kMany = 20'000;
  for (std::uint32_t session = 1; session <= kMany; ++session) {
    sessions->note(kAnswer, header(kRing, session));
    ASSERT_TRUE(sessions->has(kData, header(kRing, session)));
  }
  for (std::uint32_t session = 1; session <= kMany; ++session) {
    known += sessions->has(kData, header(kRing, session)) ? 1 : 0;
  }
  EXPECT_GT(known, 1000u);
  EXPECT_LT(known, kMany);
}

} // namespace
} // namespace weir::conn
