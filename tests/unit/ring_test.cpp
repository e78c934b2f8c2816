// SPDX-License-Identifier: BSD-3-Clause

/// A ring as one switch holds it: alone, and as the switches of docs/protocol.md's trees would.

#include "ring/digest_difference.hpp"
#include "ring/ring.hpp"
#include "support/frame_builder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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
    EXPECT_EQ(ring.rank_of(rank), rank);
    EXPECT_EQ(ring.source_of(rank), test::ip(fmt::format("10.0.0.{}", rank + 1)));
    EXPECT_EQ(ring.destination_of(rank), test::ip(fmt::format("10.0.0.{}", next + 1)));
    EXPECT_EQ(ring.receiver_of(rank), next);
  }
  EXPECT_EQ(ring.child(2).port, 5);
  EXPECT_EQ(ring.child(1).port, std::nullopt);
}

Child rank(std::uint16_t number, std::optional<std::uint16_t> port = {}) {
  return {.ranks = {number, 1}, .port = port, .name = {}};
}

Child switch_below(RankRange ranks, std::optional<std::uint16_t> port) {
  return {.ranks = ranks, .port = port, .kind = ChildKind::switch_below, .name = "rack"};
}

/// Five ranks, of which this switch meets some.
Ring part_of_five(std::vector<Child> children, std::optional<Parent> parent) {
  RingSpec spec = ring_of(5);
  spec.members[2].port.reset();
  spec.children = std::move(children);
  spec.parent = std::move(parent);
  return Ring(spec);
}

/// Ranks 0 and 1 are children of this switch, and a switch below answers for 2, 3 and 4.
TEST(Ring, OfARootMeetsASwitchBelowAsOneConnection) {
  const Ring root = part_of_five({rank(0), rank(1), switch_below({2, 3}, 9)}, {});
  ASSERT_EQ(root.children(), 3);
  EXPECT_EQ(root.senders(), 3);
  EXPECT_TRUE(root.is_in_tree());
  EXPECT_EQ(root.rank_of(2), 4) << "its last rank";
  EXPECT_EQ(root.source_of(2), test::ip("10.0.0.5"));
  EXPECT_EQ(root.destination_of(2), test::ip("10.0.0.1"));
  EXPECT_EQ(root.child_of_rank(3), 2);
  EXPECT_EQ(root.sender_for(3), std::nullopt) << "its packets stay below";
  EXPECT_EQ(root.sender_for(4), 2);
  EXPECT_EQ(root.receiver_of(1), 2);
  EXPECT_EQ(root.receiver_of(2), 0);
  EXPECT_EQ(root.sender_to(0), 2);
  for (std::uint16_t child = 0; child < 3; ++child) {
    EXPECT_EQ(root.leg_of(child), Leg::inner);
  }
}

/// The switch below.
TEST(Ring, OfASwitchBelowMeetsItsParentAsOneConnectionMore) {
  const Ring below = part_of_five({rank(2), rank(3), rank(4)}, Parent{3, "spine"});
  EXPECT_EQ(below.child_of_rank(1), std::nullopt) << "another switch's";
  EXPECT_EQ(below.child_of_rank(2), 0);
  EXPECT_EQ(below.senders(), 4);
  EXPECT_TRUE(below.is_parent(3));
  EXPECT_EQ(below.port_of(3), 3);
  EXPECT_EQ(below.sender_for(1), 3) << "the total comes as the rank before ours";
  EXPECT_EQ(below.sender_for(0), std::nullopt);
  EXPECT_EQ(below.receiver_of(0), 1);
  EXPECT_EQ(below.receiver_of(2), 3) << "the parent";
  EXPECT_EQ(below.receiver_of(3), 0);
  EXPECT_EQ(below.sender_to(0), 3);
  EXPECT_EQ(below.destination_of(2), test::ip("10.0.0.1"));
  EXPECT_EQ(below.source_of(3), test::ip("10.0.0.2"));
  EXPECT_EQ(below.leg_of(1), Leg::inner);
  EXPECT_EQ(below.leg_of(2), Leg::outgoing);
  EXPECT_EQ(below.leg_of(3), Leg::entering);
}

/// zlib.crc32 in Python of the same bytes.
TEST(Ring, DigestIsOfAllThatMustBeEqualAlongTheTree) {
  RingSpec spec = ring_of(3);
  spec.window = 8;
  spec.max_message_bytes = 65536;
  spec.mtu = 1024;
  EXPECT_EQ(Ring(spec).digest(), 0xf2650a95);
  const auto changed = [&](auto&& change) {
    RingSpec other = spec;
    change(other);
    return Ring(other).digest() != 0xf2650a95;
  };
  EXPECT_TRUE(changed([](RingSpec& ring) { ring.id = 8; }));
  EXPECT_TRUE(changed([](RingSpec& ring) { ring.window = 7; }));
  EXPECT_TRUE(changed([](RingSpec& ring) { ring.max_message_bytes = 4096; }));
  EXPECT_TRUE(changed([](RingSpec& ring) { ring.mtu = 2048; }));
  EXPECT_TRUE(changed([](RingSpec& ring) { std::swap(ring.members[0], ring.members[1]); }));
}

TEST(Ring, RefusesChildrenThatAreNoPartOfARing) {
  const std::optional<Parent> none;
  const std::optional<Parent> parent = Parent{3, "spine"};
  EXPECT_NO_THROW(part_of_five({rank(0), rank(1)}, parent));
  EXPECT_NO_THROW(part_of_five({rank(4)}, parent)) << "one child is enough below a parent";
  EXPECT_NO_THROW(part_of_five({switch_below({0, 1}, 1), switch_below({1, 4}, 2)}, none));
  const auto refuses = [](std::vector<Child> children, const std::optional<Parent>& above) {
    EXPECT_THROW(part_of_five(std::move(children), above), std::invalid_argument);
  };
  refuses({rank(0), rank(2)}, parent);                                 // a gap
  refuses({rank(1), rank(0)}, parent);                                 // another order
  refuses({switch_below({0, 2}, 1), switch_below({1, 4}, 2)}, none);   // one of them twice
  refuses({switch_below({0, 2}, 1), switch_below({2, 4}, 2)}, none);   // too many
  refuses({switch_below({0, 5}, 1), switch_below({5, 0}, 2)}, none);   // nobody
  refuses({rank(0), rank(1)}, none);                                   // some are nobody's
  refuses({switch_below({0, 5}, 1)}, none);                            // one child of a root
  refuses({switch_below({0, 2}, 1), switch_below({2, 3}, 2)}, parent); // the whole world
  refuses({Child{.ranks = {0, 2}, .port = {}, .name = {}}}, parent);   // a rank of two
  refuses({switch_below({0, 2}, {})}, parent);                         // without a port
  refuses({switch_below({0, 2}, 3)}, parent);                          // with the parent's
  refuses({rank(0, 3)}, parent);                                       // the same
  refuses({rank(0, 1), switch_below({1, 4}, 1)}, none);                // with a rank's
  RingSpec spec = ring_of(5);
  spec.children = {rank(0), rank(1)};
  spec.parent = parent;
  EXPECT_THROW(Ring{spec}, std::invalid_argument) << "a member has a port beside children";
}

/// For each pair of values that a ring may have, without a look at the code's way to find them.
TEST(DigestDifference, FindsTheNumberThatDiffers) {
  RingSpec ours = ring_of(4);
  ours.window = 8;
  ours.max_message_bytes = 65'536;
  ours.mtu = 1024;
  using Numbers = std::vector<std::tuple<std::string_view, std::uint32_t, std::uint32_t>>;
  const auto found = [&ours](const RingSpec& theirs) {
    Numbers numbers;
    for (const OtherNumber& number : numbers_that_differ(ours, digest_of(theirs))) {
      numbers.emplace_back(number.key, number.theirs, number.ours);
    }
    return numbers;
  };
  EXPECT_EQ(found(ours), Numbers());
  for (const std::uint32_t window : {1u, 7u, 9u, 1024u}) {
    RingSpec theirs = ours;
    theirs.window = window;
    EXPECT_EQ(found(theirs), (Numbers{{"window", window, 8}}));
    theirs.mtu = 4096;
    EXPECT_EQ(found(theirs), (Numbers{{"mtu", 4096, 1024}, {"window", window, 8}}));
    theirs.max_message_bytes = 4096;
    EXPECT_EQ(found(theirs), Numbers()) << "too much differs";
  }
  for (const std::uint32_t bytes : {40u, 65'544u, 1u << 24}) {
    RingSpec theirs = ours;
    theirs.max_message_bytes = bytes;
    EXPECT_EQ(found(theirs), (Numbers{{"max_message_bytes", bytes, 65'536}}));
  }
  for (const std::uint16_t mtu : {256, 512, 2048, 4096}) {
    RingSpec theirs = ours;
    theirs.mtu = mtu;
    EXPECT_EQ(found(theirs), (Numbers{{"mtu", mtu, 1024}}));
  }
}

/// Where members differ some number would explain it, which is mostly none that anybody would set.
TEST(DigestDifference, SaysMostlyNothingOfOtherMembers) {
  const RingSpec ours = [] {
    RingSpec spec = ring_of(4);
    spec.window = 8;
    spec.max_message_bytes = 65'536;
    return spec;
  }();
  int wrong = 0;
  for (int last = 1; last < 250; ++last) {
    RingSpec theirs = ours;
    theirs.members[3].ip = test::ip(fmt::format("10.0.9.{}", last));
    wrong += numbers_that_differ(ours, digest_of(theirs)).empty() ? 0 : 1;
  }
  EXPECT_LE(wrong, 2);
}

} // namespace
} // namespace weir::ring::ring_test
