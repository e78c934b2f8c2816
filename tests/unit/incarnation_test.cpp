// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §2a: nonces and sessions.

#include "conn/incarnation.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace weir::conn::incarnation_test {
namespace {

TEST(RetiredNonces, RemembersTheLastSixteen) {
  RetiredNonces retired;
  EXPECT_FALSE(retired.has(100));
  for (std::uint32_t nonce = 100; nonce < 116; ++nonce) {
    retired.add(nonce);
  }
  for (std::uint32_t nonce = 100; nonce < 116; ++nonce) {
    EXPECT_TRUE(retired.has(nonce)) << nonce;
  }
  retired.add(116);
  EXPECT_FALSE(retired.has(100)) << "the oldest of seventeen";
  EXPECT_TRUE(retired.has(101));
  EXPECT_TRUE(retired.has(116));
}

TEST(SessionSource, CountsForWhatMustBeRepeatable) {
  SessionSource source = SessionSource::counting_from(7);
  EXPECT_EQ(source.draw(0), 7u);
  EXPECT_EQ(source.draw(7), 8u);
  EXPECT_EQ(source.draw(9), 10u) << "never the last one again";
}

TEST(SessionSource, NeverDrawsZero) {
  SessionSource source = SessionSource::counting_from(0xffffffff);
  EXPECT_EQ(source.draw(1), 0xffffffffu);
  EXPECT_EQ(source.draw(0xffffffff), 1u);
}

TEST(SessionSource, StaysRepeatableForAnotherWorker) {
  SessionSource source = SessionSource::counting_from(7).with_key({0x1111, 0});
  EXPECT_EQ(source.draw(0), 7u);
  SessionSource random = SessionSource::random({0x1111, 0}).with_key({0x2222, 0});
  EXPECT_EQ(random.draw(0), SessionSource::random({0x2222, 0}).draw(0));
}

/// A switch that starts again has another key, and so has each of its workers.
TEST(SessionSource, GivesWorkersBesideOneAnotherOthersByTheSwitchsKey) {
  const SessionSource first = SessionSource::random({0x1111, 0});
  const SessionSource again = SessionSource::random({0x2222, 0});
  std::set<std::uint32_t> drawn;
  for (SessionSource source :
       {first, first.beside(1), first.beside(2), again, again.beside(1), again.beside(2)}) {
    drawn.insert(source.draw(0));
  }
  EXPECT_EQ(drawn.size(), 6u);
  EXPECT_EQ(SessionSource::counting_from(7).beside(1).draw(0), 7u);
}

/// With openssl: printf '\0\0\0\0\0\0\0\0' | openssl mac -macopt size:8 SIPHASH
/// -macopt hexkey:000102030405060708090a0b0c0d0e0f, and the same for the number 1; the lower
/// halves.
TEST(SessionSource, TakesSessionsFromSipHash) {
  SessionSource source = SessionSource::random({0x0706050403020100, 0x0f0e0d0c0b0a0908});
  EXPECT_EQ(source.draw(0), 0xa07681a7u);
  EXPECT_EQ(source.draw(0), 0x85e6d1f6u);
}

TEST(SessionSource, DrawsOthersFromAnotherKey) {
  SessionSource one = SessionSource::random({0x1111'2222'3333'4444, 1});
  SessionSource same = SessionSource::random({0x1111'2222'3333'4444, 1});
  SessionSource other = SessionSource::random({0x1111'2222'3333'4444, 2});
  std::set<std::uint32_t> drawn;
  std::uint32_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t session = one.draw(last);
    EXPECT_NE(session, 0u);
    EXPECT_NE(session, last);
    EXPECT_EQ(session, same.draw(last));
    EXPECT_NE(session, other.draw(last));
    drawn.insert(session);
    last = session;
  }
  EXPECT_GT(drawn.size(), 990u) << "a birthday or two at most";
}

} // namespace
} // namespace weir::conn::incarnation_test
