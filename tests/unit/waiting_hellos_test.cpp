// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §2a: hellos wait, four of each rank.

#include "conn/waiting_hellos.hpp"
#include "frame/frame.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace weir::conn::waiting_hellos_test {
namespace {

/// Hellos of a ring of three, each in a frame of its own.
class Waiting {
 public:
  /// Returns the frame whose place it took, if there was one.
  const frame::Frame* put(std::uint16_t rank, const Incarnation& incarnation,
                          std::uint16_t port = 0) {
    WaitingHello& place = hellos.place_for(rank, port);
    const frame::Frame* displaced = place.frame;
    if (displaced != nullptr) {
      hellos.take(place);
    }
    frames[used].ingress = port;
    hellos.put(place, {&frames[used++], nullptr, incarnation});
    return displaced;
  }

  WaitingHellos hellos{3};
  std::array<frame::Frame, 16> frames{};
  std::size_t used = 0;
};

TEST(WaitingHellos, FindsARanksHelloByIncarnation) {
  Waiting waiting;
  waiting.put(1, {5, 0xaa});
  EXPECT_EQ(waiting.hellos.find(1, {5, 0xaa})->frame, &waiting.frames[0]);
  EXPECT_EQ(waiting.hellos.find(0, {5, 0xaa}), nullptr) << "another rank";
  EXPECT_EQ(waiting.hellos.find(1, {6, 0xaa}), nullptr) << "another epoch";
  EXPECT_EQ(waiting.hellos.find(1, {5, 0xab}), nullptr) << "another nonce";
  EXPECT_EQ(waiting.hellos.find({5, 0xaa})->frame, &waiting.frames[0]) << "any rank's";
  EXPECT_EQ(waiting.hellos.find({5, 0xab}), nullptr);
}

TEST(WaitingHellos, AFifthTakesTheOldestsPlace) {
  Waiting waiting;
  for (std::uint32_t nonce = 1; nonce <= 4; ++nonce) {
    EXPECT_EQ(waiting.put(0, {1, nonce}), nullptr);
  }
  EXPECT_EQ(waiting.put(1, {1, 9}), nullptr) << "another rank has four of its own";
  EXPECT_EQ(waiting.put(0, {1, 5}), &waiting.frames[0]);
  EXPECT_EQ(waiting.put(0, {1, 6}), &waiting.frames[1]);
  EXPECT_EQ(waiting.hellos.find(0, {1, 2}), nullptr);
  EXPECT_EQ(waiting.hellos.waiting_of(0), 4u);
  EXPECT_EQ(waiting.hellos.waiting_of(1), 1u);
  EXPECT_EQ(waiting.hellos.waiting_of(2), 0u);
  EXPECT_EQ(waiting.hellos.size(), 5u);
}

TEST(WaitingHellos, ManyByOnePortDisplaceTheirOwn) {
  constexpr std::uint16_t member = 3;
  constexpr std::uint16_t stranger = 9;
  Waiting waiting;
  waiting.put(0, {1, 1}, member);
  for (std::uint32_t nonce = 2; nonce <= 4; ++nonce) {
    EXPECT_EQ(waiting.put(0, {9, nonce}, stranger), nullptr);
  }
  for (std::uint32_t nonce = 5; nonce <= 14; ++nonce) {
    EXPECT_EQ(waiting.put(0, {9, nonce}, stranger), &waiting.frames[nonce - 4]) << "its oldest";
  }
  EXPECT_NE(waiting.hellos.find(0, {1, 1}), nullptr);
}

TEST(WaitingHellos, WhoComesLaterGetsPlacesOfTheOneWhoHasMost) {
  constexpr std::uint16_t member = 3;
  constexpr std::uint16_t stranger = 9;
  Waiting waiting;
  for (std::uint32_t nonce = 1; nonce <= 4; ++nonce) {
    waiting.put(0, {9, nonce}, stranger);
  }
  EXPECT_EQ(waiting.put(0, {1, 1}, member), &waiting.frames[0]);
  EXPECT_EQ(waiting.put(0, {1, 2}, member), &waiting.frames[1]);
  EXPECT_EQ(waiting.put(0, {9, 5}, stranger), &waiting.frames[2]);
  EXPECT_EQ(waiting.put(0, {1, 3}, member), &waiting.frames[4]) << "half of the places are its";
  EXPECT_NE(waiting.hellos.find(0, {1, 2}), nullptr);
}

TEST(WaitingHellos, APlaceThatWasGivenBackIsTakenFirst) {
  Waiting waiting;
  for (std::uint32_t nonce = 1; nonce <= 4; ++nonce) {
    waiting.put(0, {1, nonce});
  }
  const WaitingHello taken = waiting.hellos.take(*waiting.hellos.find(0, {1, 3}));
  EXPECT_EQ(taken.frame, &waiting.frames[2]);
  EXPECT_EQ(taken.incarnation, (Incarnation{1, 3}));
  EXPECT_EQ(waiting.hellos.size(), 3u);
  EXPECT_EQ(waiting.put(0, {1, 5}), nullptr);
  EXPECT_EQ(waiting.put(0, {1, 6}), &waiting.frames[0]);
}

TEST(WaitingHellos, AChildsNewestIsTheOneThatCameLast) {
  Waiting waiting;
  for (std::uint32_t nonce = 1; nonce <= 5; ++nonce) {
    waiting.put(0, {1, nonce});
    EXPECT_EQ(waiting.hellos.newest_of(0).frame, &waiting.frames[nonce - 1]);
  }
  waiting.put(1, {1, 1});
  EXPECT_EQ(waiting.hellos.newest_of(0).frame, &waiting.frames[4])
      << "another child's is no matter";
  waiting.hellos.take(*waiting.hellos.find(0, {1, 5}));
  EXPECT_EQ(waiting.hellos.newest_of(0).frame, &waiting.frames[3]);
}

/// A change of any hello may make another set the newest.
TEST(WaitingHellos, TheNewestCompleteSetIsTheOneThatWasHeardLast) {
  Waiting waiting;
  const Incarnation first{1, 0xa};
  const Incarnation second{1, 0xb};
  for (const std::uint16_t rank : {0, 1, 2}) {
    EXPECT_EQ(waiting.hellos.newest_complete(), nullptr);
    EXPECT_FALSE(waiting.hellos.is_older_set(first));
    waiting.put(rank, first);
  }
  EXPECT_EQ(waiting.hellos.newest_complete()->incarnation, first);
  waiting.put(0, second);
  waiting.put(1, second);
  EXPECT_FALSE(waiting.hellos.is_older_set(second)) << "no set yet";
  waiting.put(2, second);
  EXPECT_EQ(waiting.hellos.newest_complete()->incarnation, second);
  EXPECT_TRUE(waiting.hellos.is_older_set(first));
  waiting.hellos.hear(*waiting.hellos.find(1, first));
  EXPECT_EQ(waiting.hellos.newest_complete()->incarnation, first);
  EXPECT_TRUE(waiting.hellos.is_older_set(second));
  waiting.hellos.take(*waiting.hellos.find(0, second));
  EXPECT_FALSE(waiting.hellos.is_older_set(second));
}

TEST(WaitingHellos, AreCompleteWhenEveryRankHasOneOfTheSameIncarnation) {
  Waiting waiting;
  waiting.put(0, {1, 7});
  waiting.put(1, {1, 7});
  waiting.put(2, {2, 7});
  waiting.put(2, {1, 8});
  EXPECT_FALSE(waiting.hellos.is_complete({1, 7}));
  EXPECT_FALSE(waiting.hellos.is_complete({2, 7}));
  waiting.put(2, {1, 7});
  EXPECT_TRUE(waiting.hellos.is_complete({1, 7}));
  waiting.hellos.take(*waiting.hellos.find(0, {1, 7}));
  EXPECT_FALSE(waiting.hellos.is_complete({1, 7}));
}

} // namespace
} // namespace weir::conn::waiting_hellos_test
