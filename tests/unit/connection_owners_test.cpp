// SPDX-License-Identifier: BSD-3-Clause

/// Which worker has a connection, and what the others learn of it.

#include "conn/connection_owners.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace weir::conn::connection_owners_test {
namespace {

using Worker = ConnectionOwners::Worker;

constexpr QueuePair kName{.pair = 3, .qp = 0xabcdef};
constexpr QueuePair kAnswers{.pair = 4, .qp = 0x123456};

frame::Frame frame_on(const QueuePair& name, wire::Position position) {
  frame::Frame frame;
  frame.pair = name.pair;
  frame.packet.destination_qp = name.qp;
  frame.packet.opcode.position = position;
  frame.packet.parsed =
      position == wire::Position::none ? wire::Parsed::transport : wire::Parsed::message;
  return frame;
}

class Owners : public testing::Test {
 protected:
  std::optional<Worker> of(const QueuePair& name,
                           wire::Position position = wire::Position::middle) const {
    return owners_.owner_of(frame_on(name, position));
  }

  std::size_t moved_from(Worker worker) {
    std::size_t count = 0;
    owners_.take_moved(worker, [&](const QueuePair& name) {
      EXPECT_EQ(name.qp, kName.qp);
      ++count;
    });
    return count;
  }

  ConnectionOwners owners_{8, 3, HashKey{}};
};

TEST_F(Owners, NobodyHasAConnectionBeforeItIsAdmitted) {
  EXPECT_EQ(of(kName), std::nullopt);
  owners_.admit(kName, 2);
  EXPECT_EQ(of(kName), 2);
  EXPECT_EQ(of({.pair = 4, .qp = kName.qp}), std::nullopt);
  EXPECT_EQ(of({.pair = 3, .qp = kName.qp + 1}), std::nullopt);
  EXPECT_EQ(of(kName, wire::Position::none), std::nullopt) << "an answer to that number";
}

TEST_F(Owners, WhatIsNoRoceHasNone) {
  owners_.admit(kName, 2);
  frame::Frame frame = frame_on(kName, wire::Position::middle);
  for (const auto parsed : {wire::Parsed::other, wire::Parsed::malformed}) {
    frame.packet.parsed = parsed;
    EXPECT_EQ(owners_.owner_of(frame), std::nullopt);
  }
}

TEST_F(Owners, ADeadConnectionStaysWhereItWas) {
  owners_.admit(kName, 2);
  owners_.end(kName, 1); // not its own
  owners_.end(kName, 2);
  EXPECT_EQ(of(kName), 2);
  owners_.admit(kName, 0);
  EXPECT_FALSE(owners_.has_moved(2)) << "it was dead";
  EXPECT_EQ(of(kName), 0);
}

TEST_F(Owners, WhoHasLostALiveConnectionLearnsOfIt) {
  owners_.admit(kName, 1);
  owners_.admit(kName, 1); // a new incarnation of the worker's own
  EXPECT_FALSE(owners_.has_moved(1));
  owners_.admit(kName, 2);
  EXPECT_EQ(of(kName), 2);
  EXPECT_TRUE(owners_.has_moved(1));
  EXPECT_FALSE(owners_.has_moved(2));
  EXPECT_EQ(moved_from(1), 1U);
  EXPECT_FALSE(owners_.has_moved(1));
}

TEST_F(Owners, WhoHasItAgainByThenKeepsIt) {
  owners_.admit(kName, 1);
  owners_.admit(kName, 2);
  owners_.admit(kName, 1);
  EXPECT_EQ(moved_from(1), 0U);
  EXPECT_EQ(moved_from(2), 1U);
}

TEST_F(Owners, AnswersGoToTheFirstWhoClaimsThemUntilAnotherIsTheOnlyOne) {
  EXPECT_FALSE(owners_.is_sole_claim(kAnswers, 1));
  owners_.claim(kAnswers, 1);
  EXPECT_EQ(of(kAnswers, wire::Position::none), 1);
  EXPECT_TRUE(owners_.is_sole_claim(kAnswers, 1));
  owners_.claim(kAnswers, 2);
  EXPECT_FALSE(owners_.is_sole_claim(kAnswers, 1));
  EXPECT_FALSE(owners_.is_sole_claim(kAnswers, 2));
  owners_.give_up_claim(kAnswers);
  EXPECT_TRUE(owners_.is_sole_claim(kAnswers, 2)) << "worker 1 has given up";
  EXPECT_EQ(of(kAnswers, wire::Position::none), 2);
  owners_.give_up_claim(kAnswers);
  EXPECT_FALSE(owners_.is_sole_claim(kAnswers, 2));
}

TEST_F(Owners, ThePastMakesRoomForWhatIsLive) {
  constexpr std::uint32_t kMany = 5000; // of a table for 8
  for (std::uint32_t qp = 1; qp <= kMany; ++qp) {
    owners_.admit({.pair = 7, .qp = qp}, 1);
    EXPECT_EQ(of({.pair = 7, .qp = qp}), 1) << qp;
    owners_.end({.pair = 7, .qp = qp}, 1);
  }
}

} // namespace
} // namespace weir::conn::connection_owners_test
