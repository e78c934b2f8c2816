// SPDX-License-Identifier: BSD-3-Clause

/// A ring as one switch holds it: alone, and as the switches of docs/protocol.md's trees would.

#include "ring/ring.hpp"
#include "support/frame_builder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

namespace weir::ring::ring_test {
namespace {

/// Rank r has the address 10.0.0.(r + 1), and rank 2 is bound to port 5.
RingSpec ring_of(std::uint16_t world) {
  RingSpec spec{.id = 7, .members = {}};
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    spec.members.push_back({test::ip(fmt::format("10.0.0.{}", rank + 1)), {}});
  }
  spec.members[2].port = 5;
  return spec;
}

TEST(Ring, OfOneSwitchHasAChildForEachRank) {
  const Ring ring(ring_of(4));
  EXPECT_FALSE(ring.parent());
  ASSERT_EQ(ring.children(), 4);
  for (std::uint16_t rank = 0; rank < 4; ++rank) {
    const auto next = static_cast<std::uint16_t>((rank + 1) % 4);
    EXPECT_EQ(ring.child_of_rank(rank), rank);
    EXPECT_EQ(ring.sender_of(rank), rank);
    EXPECT_EQ(ring.source_of(rank), test::ip(fmt::format("10.0.0.{}", rank + 1)));
    EXPECT_EQ(ring.destination_of(rank), test::ip(fmt::format("10.0.0.{}", next + 1)));
    EXPECT_EQ(ring.receiver_of(rank), next);
  }
  EXPECT_EQ(ring.child(2).port, 5);
  EXPECT_EQ(ring.child(1).port, std::nullopt);
}

/// Ranks 0 and 1 are children of this switch, and a switch below answers for 2, 3 and 4.
TEST(Ring, OfARootMeetsASwitchBelowAsOneConnection) {
  const Ring root(ring_of(5), {{{0, 1}, {}}, {{1, 1}, {}}, {{2, 3}, 9}}, std::nullopt);
  ASSERT_EQ(root.children(), 3);
  EXPECT_EQ(root.sender_of(2), 4) << "its last rank";
  EXPECT_EQ(root.source_of(2), test::ip("10.0.0.5"));
  EXPECT_EQ(root.destination_of(2), test::ip("10.0.0.1"));
  EXPECT_EQ(root.child_of_rank(3), 2);
  EXPECT_EQ(root.receiver_of(1), 2);
  EXPECT_EQ(root.receiver_of(2), 0);
}

/// The switch below.
TEST(Ring, OfASwitchBelowSendsItsLastChildsPacketsToItsParent) {
  const Ring below(ring_of(5), {{{2, 1}, {}}, {{3, 1}, {}}, {{4, 1}, {}}}, Parent{3});
  EXPECT_EQ(below.child_of_rank(1), std::nullopt) << "another switch's";
  EXPECT_EQ(below.child_of_rank(2), 0);
  EXPECT_EQ(below.receiver_of(0), 1);
  EXPECT_EQ(below.receiver_of(2), std::nullopt) << "the parent";
  EXPECT_EQ(below.destination_of(2), test::ip("10.0.0.1"));
}

TEST(Ring, RefusesChildrenThatAreNoPartOfARing) {
  const auto make = [](std::vector<Child> children, std::optional<Parent> parent) {
    return Ring(ring_of(4), std::move(children), parent);
  };
  EXPECT_THROW(make({{{0, 2}, {}}, {{3, 1}, {}}}, std::nullopt), std::invalid_argument) << "a gap";
  EXPECT_THROW(make({{{0, 2}, {}}, {{1, 3}, {}}}, std::nullopt), std::invalid_argument) << "twice";
  EXPECT_THROW(make({{{0, 5}, {}}}, std::nullopt), std::invalid_argument) << "too many";
  EXPECT_THROW(make({{{0, 4}, {}}, {{4, 0}, {}}}, std::nullopt), std::invalid_argument) << "none";
  EXPECT_THROW(make({{{0, 3}, {}}}, std::nullopt), std::invalid_argument) << "rank 3 is nobody's";
  EXPECT_NO_THROW(make({{{0, 3}, {}}}, Parent{}));
}

} // namespace
} // namespace weir::ring::ring_test
