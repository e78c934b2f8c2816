// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3: which addresses are neighbours, and which rings share a worker.

#include "ring/ring_set.hpp"
#include "support/colliding_rings.hpp"
#include "support/ring_job.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::ring::ring_set_test {
namespace {

using test::RingJob;

TEST(RingSet, NumbersNeighboursBothWays) {
  RingJob three({.ring = 7, .world = 3});
  RingJob four({.ring = 9, .world = 4, .network = test::Network::ipv6});
  const RingSet set({three.ring(), four.ring()});
  EXPECT_EQ(set.pairs(), 2u * 3 + 2u * 4);
  std::set<std::uint16_t> numbers;
  for (const RingJob* job : {&three, &four}) {
    for (std::uint16_t rank = 0; rank < job->spec().world; ++rank) {
      const wire::IpAddress own = job->ip_of(rank);
      const wire::IpAddress next = job->ip_of(job->successor_of(rank));
      const std::uint16_t forward = set.pair_of(own, next);
      const std::uint16_t reverse = set.pair_of(next, own);
      EXPECT_TRUE(forward >= 1 && forward <= set.pairs());
      EXPECT_TRUE(numbers.insert(forward).second);
      EXPECT_TRUE(numbers.insert(reverse).second);
      EXPECT_EQ(set.reverse_of(forward), reverse);
      EXPECT_EQ(set.reverse_of(reverse), forward);
      const auto ring_group = set.ring_group_of(job == &three ? 0 : 1);
      EXPECT_EQ(set.ring_group_of_pair(forward), ring_group);
      EXPECT_EQ(set.ring_group_of_pair(reverse), ring_group);
    }
  }
  EXPECT_NE(set.ring_group_of(0), set.ring_group_of(1));
}

TEST(RingSet, KnowsNobodyElse) {
  RingJob three({.ring = 7, .world = 3});
  RingJob four({.ring = 9, .world = 4, .network = test::Network::ipv6});
  const RingSet set({three.ring(), four.ring()});
  EXPECT_EQ(set.pair_of(four.ip_of(0), four.ip_of(2)), 0) << "across the ring";
  EXPECT_EQ(set.pair_of(four.ip_of(3), four.ip_of(1)), 0);
  EXPECT_EQ(set.pair_of(three.ip_of(1), three.ip_of(1)), 0);
  EXPECT_EQ(set.pair_of(three.ip_of(0), four.ip_of(1)), 0);
  EXPECT_EQ(set.pair_of(test::ip("192.0.2.1"), test::ip("192.0.2.2")), 0);
  EXPECT_EQ(RingSet({}).pair_of({}, {}), 0);
}

// ---- Addresses that a tenant chose to collide (docs/security.md, "Tables that packets can fill").

constexpr std::uint32_t kChosenRings = 16;
constexpr std::uint16_t kChosenMembers = 256;

TEST(RingSet, ChosenAddressesCollideWithoutAKey) {
  for (const RingSpec& ring : test::colliding_rings(kChosenRings, kChosenMembers)) {
    for (std::size_t member = 0; member + 1 < ring.members.size(); ++member) {
      const std::uint64_t hash =
          test::UnkeyedHash::of(ring.members[member].ip, ring.members[member + 1].ip);
      ASSERT_EQ(hash & 0xffff'ffff, 0u);
    }
  }
}

/// A ring's members with their successors.
using Neighbours = std::vector<std::pair<wire::IpAddress, wire::IpAddress>>;

Neighbours neighbours_in(const std::vector<RingSpec>& rings) {
  Neighbours neighbours;
  for (const RingSpec& ring : rings) {
    for (std::size_t member = 0; member + 1 < ring.members.size(); ++member) {
      neighbours.emplace_back(ring.members[member].ip, ring.members[member + 1].ip);
    }
  }
  return neighbours;
}

/// The shortest time of some in which all are looked up. Expects that all are found.
std::chrono::nanoseconds time_of_look_ups(const RingSet& set, const Neighbours& neighbours) {
  auto least = std::chrono::nanoseconds::max();
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto found = std::ranges::count_if(
        neighbours, [&](const auto& pair) { return set.pair_of(pair.first, pair.second) != 0; });
    least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - start);
    EXPECT_EQ(found, static_cast<std::ptrdiff_t>(neighbours.size()));
  }
  return least;
}

std::vector<RingSpec> rings_of_ipv6_jobs() {
  std::vector<RingSpec> rings;
  for (std::uint32_t id = 0; id < kChosenRings; ++id) {
    RingSpec ring{.id = id, .members = {}};
    for (unsigned member = 0; member < kChosenMembers; ++member) {
      ring.members.push_back({test::ip(fmt::format("2001:db8::{:x}:{:x}", id, member)), {}});
    }
    rings.push_back(ring);
  }
  return rings;
}

/// They took 90 times as long before the hash had a key.
TEST(RingSet, NobodyChoosesAddressesThatAreFoundSlowly) {
  const auto usual = rings_of_ipv6_jobs();
  const auto chosen = test::colliding_rings(kChosenRings, kChosenMembers);
  EXPECT_LT(time_of_look_ups(RingSet(chosen), neighbours_in(chosen)),
            10 * time_of_look_ups(RingSet(usual), neighbours_in(usual)));
}

TEST(RingSet, ManyMoreMembersAreFoundToo) {
  const auto rings = test::colliding_rings(127, kChosenMembers); // nearly kMostMembers
  const RingSet set(rings);
  std::set<std::uint16_t> numbers;
  for (const auto& [source, destination] : neighbours_in(rings)) {
    numbers.insert(set.pair_of(source, destination));
  }
  EXPECT_EQ(numbers.size(), 127u * (kChosenMembers - 1u));
  EXPECT_FALSE(numbers.contains(0));
}

TEST(RingSet, FindsRingsById) {
  RingJob three({.ring = 7, .world = 3});
  RingJob four({.ring = 9, .world = 4, .network = test::Network::ipv6});
  const RingSet set({three.ring(), four.ring()});
  EXPECT_EQ(set.rings().size(), 2u);
  EXPECT_EQ(set.ring_with_id(7), 0);
  EXPECT_EQ(set.ring_with_id(9), 1);
  EXPECT_EQ(set.ring_with_id(0), std::nullopt);
}

TEST(RingSet, InARingOfTwoBothWaysAreForward) {
  RingJob job({.world = 2});
  const RingSet set({job.ring()});
  EXPECT_EQ(set.pairs(), 2u);
  const std::uint16_t there = set.pair_of(job.ip_of(0), job.ip_of(1));
  const std::uint16_t back = set.pair_of(job.ip_of(1), job.ip_of(0));
  EXPECT_NE(there, back);
  EXPECT_EQ(set.reverse_of(there), back);
  ASSERT_EQ(set.senders(there).size(), 1u);
  ASSERT_EQ(set.senders(back).size(), 1u);
  EXPECT_EQ(set.senders(there)[0].child, 0);
  EXPECT_EQ(set.senders(back)[0].child, 1);
}

/// A ring whose members are 10.0.0.x.
RingSpec ring_of(std::uint32_t id, const std::vector<int>& members) {
  RingSpec ring{.id = id, .members = {}};
  for (const int member : members) {
    ring.members.push_back({test::ip(fmt::format("10.0.0.{}", member)), {}});
  }
  return ring;
}

using Ranks = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

Ranks senders_between(const RingSet& set, int source, int destination) {
  const std::uint16_t pair = set.pair_of(test::ip(fmt::format("10.0.0.{}", source)),
                                         test::ip(fmt::format("10.0.0.{}", destination)));
  Ranks ranks;
  for (const RingChild& sender : set.senders(pair)) {
    ranks.emplace_back(sender.ring, sender.child);
  }
  return ranks;
}

TEST(RingSet, NamesTheRanksThatSendFromOneToTheOther) {
  const RingSet set({ring_of(1, {1, 2, 3}), ring_of(2, {2, 1, 4}), ring_of(3, {9, 1, 2})});
  EXPECT_EQ(senders_between(set, 1, 2), (Ranks{{0, 0}, {2, 1}}));
  EXPECT_EQ(senders_between(set, 2, 1), (Ranks{{1, 0}}));
  EXPECT_EQ(senders_between(set, 2, 3), (Ranks{{0, 1}}));
  EXPECT_EQ(senders_between(set, 3, 2), Ranks{}) << "acknowledgements alone";
}

// ---- Ports. ----

RingSpec with_port(RingSpec ring, std::uint16_t rank, std::uint16_t port) {
  ring.members[rank].port = port;
  return ring;
}

TEST(RingSet, AMembersPacketsEnterByItsPort) {
  const RingSet set({with_port(ring_of(1, {1, 2, 3, 4}), 1, 5)});
  const auto may_enter = [&](int source, int destination, std::uint16_t port) {
    const auto pair = set.pair_of(test::ip(fmt::format("10.0.0.{}", source)),
                                  test::ip(fmt::format("10.0.0.{}", destination)));
    return set.may_enter(pair, port);
  };
  EXPECT_TRUE(may_enter(2, 3, 5)) << "data";
  EXPECT_FALSE(may_enter(2, 3, 4));
  EXPECT_TRUE(may_enter(2, 1, 5)) << "acknowledgements";
  EXPECT_FALSE(may_enter(2, 1, 4));
  EXPECT_TRUE(may_enter(1, 2, 4)) << "rank 0 has no port";
  EXPECT_TRUE(may_enter(3, 2, 4));
}

/// All traffic to an address leaves by one port.
TEST(RingSet, RefusesAnAddressWithTwoPorts) {
  const RingSpec one = with_port(ring_of(1, {1, 2, 3}), 1, 5);
  const RingSpec other = ring_of(2, {2, 8, 9});
  EXPECT_THROW(RingSet({one, with_port(other, 0, 6)}), std::invalid_argument);
  EXPECT_NO_THROW(RingSet({one, with_port(other, 0, 5)}));
  EXPECT_NO_THROW(RingSet({one, other}));
  try {
    const RingSet set({one, with_port(other, 0, 6)});
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("10.0.0.2"), std::string::npos) << error.what();
  }
}

// ---- Groups. ----

using Groups = std::vector<std::vector<std::uint16_t>>;

/// Which rings are in one ring group. A ring's pairs must be in its own.
Groups groups_of(const RingSet& set) {
  std::map<std::uint16_t, std::vector<std::uint16_t>> by_group;
  for (std::uint16_t ring = 0; ring < set.rings().size(); ++ring) {
    by_group[set.ring_group_of(ring)].push_back(ring);
    for (std::uint16_t rank = 0; rank < set.rings()[ring].children(); ++rank) {
      const std::uint16_t pair = set.pair_of(RingChild{ring, rank});
      EXPECT_EQ(set.ring_group_of_pair(pair), set.ring_group_of(ring));
      EXPECT_EQ(set.ring_group_of_pair(set.reverse_of(pair)), set.ring_group_of(ring));
    }
  }
  Groups ring_groups;
  for (const auto& [_, members] : by_group) {
    ring_groups.push_back(members);
  }
  std::sort(ring_groups.begin(), ring_groups.end());
  return ring_groups;
}

TEST(RingSet, GroupsRingsThatShareAPair) {
  struct Row {
    const char* description;
    std::vector<std::vector<int>> rings;
    std::vector<std::vector<std::uint16_t>> ring_groups;
  };

  const std::vector<Row> rows{
      {"strangers", {{1, 2, 3}, {4, 5, 6}}, {{0}, {1}}},
      {"a member in common is no pair", {{1, 2, 3}, {3, 4, 5}}, {{0}, {1}}},
      {"the same hosts the other way round", {{1, 2, 3}, {3, 2, 1}}, {{0, 1}}},
      {"the same hosts", {{1, 2, 3}, {1, 2, 3}}, {{0, 1}}},
      {"one pair", {{1, 2, 3}, {1, 2, 4}}, {{0, 1}}},
      {"one pair, one ring's data the other's acknowledgements",
       {{1, 2, 3, 4}, {2, 1, 5, 6}},
       {{0, 1}}},
      {"a ring that joins two", {{1, 2, 3}, {4, 5, 6}, {1, 2, 4, 5}}, {{0, 1, 2}}},
      {"a chain",
       {{1, 2, 9}, {3, 4, 10}, {5, 6, 11}, {5, 6, 3, 4}, {1, 2, 12}},
       {{0, 4}, {1, 2, 3}}},
      {"pairs of two and a ring through both", {{1, 2}, {2, 1, 3}}, {{0, 1}}},
  };
  for (const Row& row : rows) {
    std::vector<RingSpec> rings;
    for (const auto& members : row.rings) {
      rings.push_back(ring_of(static_cast<std::uint32_t>(rings.size()), members));
    }
    EXPECT_EQ(groups_of(RingSet(rings)), row.ring_groups) << row.description;
  }
}

// ---- Another set made from one. ----

TEST(RingSet, KeepsItsNumbersWhenARingJoins) {
  RingJob three({.ring = 7, .world = 3});
  RingJob four({.ring = 9, .world = 4, .network = test::Network::ipv6});
  const RingSet before({three.ring()});
  const RingSet after = before.with(four.ring());
  EXPECT_EQ(before.ring_with_id(9), std::nullopt) << "a set never changes";
  EXPECT_EQ(before.pair_of(four.ip_of(0), four.ip_of(1)), 0);
  EXPECT_EQ(after.ring_with_id(7), 0);
  EXPECT_EQ(after.ring_with_id(9), 1);
  EXPECT_EQ(after.pairs(), 2u * 3 + 2u * 4);
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    const wire::IpAddress own = three.ip_of(rank);
    const wire::IpAddress next = three.ip_of(three.successor_of(rank));
    EXPECT_EQ(after.pair_of(own, next), before.pair_of(own, next));
    EXPECT_EQ(after.pair_of(next, own), before.pair_of(next, own));
    EXPECT_EQ(after.ring_group_of_pair(after.pair_of(own, next)), 0);
  }
  EXPECT_EQ(after.ring_group_of_pair(after.pair_of(four.ip_of(3), four.ip_of(0))), 1);
}

TEST(RingSet, JoinsGroupsThatANewRingTouches) {
  const RingSet before({ring_of(1, {1, 2, 3}), ring_of(2, {4, 5, 6})});
  EXPECT_NE(before.ring_group_of(0), before.ring_group_of(1));
  const RingSet after = before.with(ring_of(3, {1, 2, 4, 5}));
  EXPECT_EQ(after.ring_group_of(0), after.ring_group_of(1));
  EXPECT_EQ(after.ring_group_of(0), after.ring_group_of(2));
}

TEST(RingSet, FreesTheIdOfAWithdrawnRingAndKeepsItsNeighbours) {
  RingJob job({.ring = 7, .world = 3});
  const RingSet before({job.ring()});
  const RingSet without = before.without(0);
  EXPECT_EQ(without.ring_with_id(7), std::nullopt);
  EXPECT_EQ(without.rings().size(), 1u);
  EXPECT_EQ(without.pair_of(job.ip_of(0), job.ip_of(1)),
            before.pair_of(job.ip_of(0), job.ip_of(1)));
  EXPECT_TRUE(without.is_withdrawn(0));
  const RingSet again = without.with(job.ring());
  EXPECT_EQ(again.ring_with_id(7), 0) << "a free index";
  EXPECT_FALSE(again.is_withdrawn(0));
  EXPECT_EQ(again.pairs(), before.pairs());
  EXPECT_THROW((void)again.with(job.ring()), std::invalid_argument) << "the same id";
}

TEST(RingSet, KnowsWhichPortsLeadToSwitches) {
  RingJob plain({.ring = 7, .world = 3});
  RingSpec part = RingJob({.ring = 8, .world = 4}).ring();
  part.parent = Parent{.port = 5, .name = "spine"};
  part.children = {{.ranks = {0, 1}, .port = {}, .name = {}},
                   {.ranks = {1, 2}, .port = 3, .kind = ChildKind::switch_below, .name = "rack"}};
  const RingSet alone({plain.ring()});
  EXPECT_EQ(alone.ports_of_switches(), 0u);
  const RingSet both = alone.with(part);
  EXPECT_EQ(both.ports_of_switches(), 0b101000u);
  part.patience_ms = 9000;
  EXPECT_EQ(both.with_changed(std::vector{part}).ports_of_switches(), 0b101000u);
  EXPECT_EQ(both.without(1).ports_of_switches(), 0u);
  EXPECT_EQ(RingSet({part}).ports_of_switches(), 0b101000u);
}

TEST(RingSet, RefusesAJoiningRingThatBindsAnAddressToAnotherPort) {
  RingSpec here = ring_of(1, {1, 2, 3});
  here.members[1].port = 2;
  RingSpec there = ring_of(2, {4, 2, 6});
  there.members[1].port = 3;
  const RingSet set({here});
  EXPECT_THROW((void)set.with(there), std::invalid_argument);
}

// ---- What can change while a ring stays. ----

RingSpec tied(RingSpec ring, std::size_t rank, std::optional<std::uint16_t> port) {
  ring.members[rank].port = port;
  return ring;
}

wire::IpAddress host(int number) {
  return ring_of(0, {number}).members[0].ip;
}

/// The ports of 0 .. 3 by which frames of one may come to the other.
std::set<std::uint16_t> sources(const RingSet& set, int from, int to) {
  std::set<std::uint16_t> ports;
  const std::uint16_t pair = set.pair_of(host(from), host(to));
  for (const std::uint16_t port : {0, 1, 2, 3}) {
    if (set.may_enter(pair, port)) {
      ports.insert(port);
    }
  }
  return ports;
}

const std::set<std::uint16_t> kAnyPort{0, 1, 2, 3};

TEST(RingSet, AMemberMayBeTiedAndUntied) {
  const RingSpec free = ring_of(1, {1, 2, 3});
  const RingSet before({free});
  const std::vector<RingSpec> bound{tied(free, 1, 2)};
  const RingSet after = before.with_changed(bound);
  EXPECT_EQ(sources(after, 2, 3), (std::set<std::uint16_t>{2})) << "its data";
  EXPECT_EQ(sources(after, 2, 1), (std::set<std::uint16_t>{2})) << "its acknowledgements";
  EXPECT_EQ(sources(after, 1, 2), kAnyPort);
  EXPECT_EQ(sources(before, 2, 3), kAnyPort) << "the other set stays";
  EXPECT_EQ(after.rings()[0].spec().members[1].port, 2);
  EXPECT_EQ(sources(after.with_changed(std::vector{free}), 2, 3), kAnyPort);
}

TEST(RingSet, PatienceAndKeepAliveMayChange) {
  RingSpec ring = ring_of(5, {1, 2, 3});
  const RingSet before({ring_of(4, {4, 5}), ring});
  ring.patience_ms = 7000;
  ring.keep_alive = KeepAlive::rnr;
  const RingSet after = before.with_changed(std::vector{ring});
  EXPECT_EQ(after.rings()[1].spec().patience_ms, 7000u);
  EXPECT_EQ(after.rings()[1].spec().keep_alive, KeepAlive::rnr);
  EXPECT_EQ(after.ring_with_id(5), 1);
  EXPECT_EQ(after.pairs(), before.pairs());
  EXPECT_EQ(after.senders(after.pair_of(host(1), host(2))).size(), 1u);
}

/// Either of them alone would tie the address to two ports.
TEST(RingSet, RingsThatShareAMemberAreTiedToAnotherPortTogether) {
  const RingSpec one = ring_of(1, {1, 2, 3});
  const RingSpec two = ring_of(2, {4, 2, 5});
  const RingSet set({tied(one, 1, 0), tied(two, 1, 0)});
  EXPECT_THROW((void)set.with_changed(std::vector{tied(one, 1, 3)}), std::invalid_argument);
  const RingSet after = set.with_changed(std::vector{tied(one, 1, 3), tied(two, 1, 3)});
  EXPECT_EQ(sources(after, 2, 3), (std::set<std::uint16_t>{3}));
  EXPECT_EQ(sources(after, 2, 5), (std::set<std::uint16_t>{3}));
  EXPECT_THROW((void)after.with(tied(ring_of(3, {2, 6}), 0, 0)), std::invalid_argument);
}

/// Its hosts may still send.
TEST(RingSet, AWithdrawnRingsTiesStay) {
  const RingSpec stays = ring_of(2, {4, 5});
  const RingSet set = RingSet({tied(ring_of(1, {1, 2, 3}), 1, 2), stays}).without(0);
  EXPECT_EQ(sources(set.with_changed(std::vector{tied(stays, 0, 1)}), 2, 3),
            (std::set<std::uint16_t>{2}));
}

// ---- Limits. ----

/// Rings of 256 members and one of the rest, all addresses distinct.
std::vector<RingSpec> rings_with(std::size_t members) {
  std::vector<RingSpec> rings;
  for (std::size_t i = 0; i < members; ++i) {
    if (i % 256 == 0) {
      rings.push_back({.id = static_cast<std::uint32_t>(i), .members = {}});
    }
    rings.back().members.push_back(
        {test::ip(fmt::format("10.{}.{}.{}", i >> 16, i >> 8 & 255, i & 255)), {}});
  }
  return rings;
}

TEST(RingSet, RefusesWhatItCannotNumber) {
  RingJob job({.ring = 7, .world = 2});
  EXPECT_THROW(RingSet({job.ring(), job.ring()}), std::invalid_argument) << "the same id";
  EXPECT_THROW(RingSet{rings_with(RingSet::kMostMembers + 1)}, std::invalid_argument);
}

TEST(RingSet, FindsEveryPairOfAsManyMembersAsItTakes) {
  const std::vector<RingSpec> rings = rings_with(RingSet::kMostMembers);
  const RingSet set(rings);
  EXPECT_EQ(set.pairs(), 2 * RingSet::kMostMembers);
  std::vector<bool> seen(set.pairs() + 1);
  for (std::uint16_t ring = 0; ring < rings.size(); ++ring) {
    for (std::uint16_t rank = 0; rank < rings[ring].world(); ++rank) {
      const wire::IpAddress own = rings[ring].members[rank].ip;
      const wire::IpAddress next = rings[ring].members[rings[ring].successor(rank)].ip;
      const std::uint16_t pair = set.pair_of(own, next);
      ASSERT_NE(pair, 0);
      ASSERT_FALSE(seen[pair]);
      seen[pair] = true;
      ASSERT_EQ(set.ring_group_of_pair(pair), ring);
      ASSERT_EQ(set.pair_of(RingChild{ring, rank}), pair);
      ASSERT_EQ(set.reverse_of(pair), set.pair_of(next, own));
    }
  }
}

} // namespace
} // namespace weir::ring::ring_set_test
