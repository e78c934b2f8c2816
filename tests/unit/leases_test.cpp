// SPDX-License-Identifier: BSD-3-Clause

/// docs/operating.md, "Gone by themselves", on rings that are only values.

#include "control/leases.hpp"
#include "control/unfinished_rings.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weir::control::leases_test {
namespace {

constexpr std::uint64_t kS = 1'000'000'000;
constexpr std::uint64_t kNow = 1'000'000 * kS;

/// Made at run time, with a lease of a minute; its job is at work.
TendedRing ring_heard(std::uint64_t ago_s) {
  TendedRing ring{.spec = {.id = 17, .lease_ms = 60'000, .members = std::vector<ring::Member>(4)},
                  .care = {.origin = Origin::run_time},
                  .life = {.heard_ns = kNow - ago_s * kS, .has_incarnation = true}};
  return ring;
}

TendedRing configured(TendedRing ring) {
  ring.care.origin = Origin::configuration;
  return ring;
}

TendedRing draining(TendedRing ring, std::uint64_t since_s, std::uint64_t quiet_s) {
  ring.life.draining_since_ns = kNow - since_s * kS;
  ring.care.quiet_ms = quiet_s * 1000;
  return ring;
}

template <typename Change>
TendedRing with(TendedRing ring, Change&& change) {
  change(ring.life);
  return ring;
}

/// Of a switch that has listened all the time.
Listening long_listening() {
  Listening listening;
  for (std::uint64_t at = kNow - 7200 * kS; at <= kNow; at += kS) {
    listening.look(at);
  }
  return listening;
}

TEST(Leases, ARingIsReclaimedWhenNobodyUsesIt) {
  struct Row {
    std::string about;
    TendedRing ring;
    std::optional<ReclaimReason> reason;
    Fate fate;
  };

  constexpr auto nothing = [](stage::RingLife& life) { life.has_incarnation = false; };
  constexpr auto one_hello = [](stage::RingLife& life) {
    life.has_incarnation = false;
    life.held = 1;
  };
  constexpr auto stuck = [](stage::RingLife& life) {
    life.held = 3;
    life.filling = 1;
  };
  using enum ReclaimReason;
  const std::vector<Row> rows{
      {"silent for less than its lease", ring_heard(59), {}, Fate::withdrawn},
      {"silent for its lease", ring_heard(60), lease, Fate::withdrawn},
      {"never used since it was made", with(ring_heard(60), nothing), lease, Fate::withdrawn},
      {"a dead rank, and the others gave up", with(ring_heard(60), stuck), lease, Fate::withdrawn},
      {"configured, its job forgotten", configured(ring_heard(60)), lease, Fate::reset},
      {"configured, one hello waits", configured(with(ring_heard(60), one_hello)), lease,
       Fate::reset},
      {"configured, nothing to give back",
       configured(with(ring_heard(7000), nothing)),
       {},
       Fate::reset},
      {"draining, still in use", draining(ring_heard(9), 30, 10), {}, Fate::withdrawn},
      {"draining, out of use", draining(ring_heard(10), 30, 10), drained, Fate::withdrawn},
      {"silent for long, and told to drain just now",
       draining(ring_heard(59), 9, 10),
       {},
       Fate::withdrawn},
      {"draining, a slot fills",
       with(draining(ring_heard(59), 59, 10), stuck),
       {},
       Fate::withdrawn},
      {"draining, a slot fills for ever", with(draining(ring_heard(60), 60, 10), stuck), lease,
       Fate::withdrawn},
      {"configured, drained", configured(draining(ring_heard(10), 10, 10)), drained,
       Fate::withdrawn},
      {"configured, drained with nothing in it",
       configured(with(draining(ring_heard(7000), 10, 10), nothing)), drained, Fate::withdrawn},
      {"draining because the switch stops",
       with(ring_heard(59), [](stage::RingLife& life) { life.draining_since_ns = 0; }),
       {},
       Fate::withdrawn},
      {"heard just now", ring_heard(0), {}, Fate::withdrawn},
  };
  const Listening listening = long_listening();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.about);
    const auto grounds = grounds_to_reclaim(row.ring, listening, kNow);
    EXPECT_EQ(grounds ? std::optional(grounds->reason) : std::nullopt, row.reason);
    EXPECT_EQ(fate_of(row.ring), row.fate);
  }
}

/// Clocks of two threads may differ by a little.
TEST(Leases, WhatWasHeardAfterTheQuestionIsNoSilence) {
  TendedRing ring = ring_heard(0);
  ring.life.heard_ns = kNow + 5;
  EXPECT_FALSE(grounds_to_reclaim(ring, long_listening(), kNow));
}

TEST(Leases, TellsHowLongTheMembersWereSilent) {
  const auto grounds = grounds_to_reclaim(ring_heard(100), long_listening(), kNow);
  ASSERT_TRUE(grounds);
  EXPECT_EQ(grounds->silence_ns, 100 * kS);
}

TEST(Leases, ASwitchThatDidNotRunHasHeardNobody) {
  Listening listening;
  listening.look(kNow - 3600 * kS);
  EXPECT_TRUE(grounds_to_reclaim(ring_heard(3600), listening, kNow - 3600 * kS + 60 * kS));
  listening.look(kNow); // it slept for an hour
  EXPECT_FALSE(grounds_to_reclaim(ring_heard(3600), listening, kNow));
  for (std::uint64_t s = 1; s < 60; ++s) {
    listening.look(kNow + s * kS);
    EXPECT_FALSE(grounds_to_reclaim(ring_heard(3600), listening, kNow + s * kS));
  }
  listening.look(kNow + 60 * kS);
  EXPECT_TRUE(grounds_to_reclaim(ring_heard(3600), listening, kNow + 60 * kS));
}

TEST(Leases, AShortPauseIsNoSleep) {
  Listening listening;
  listening.look(kNow - 60 * kS);
  for (std::uint64_t ago = 60; ago > 0; ago -= 10) {
    listening.look(kNow - (ago - 10) * kS);
  }
  EXPECT_TRUE(grounds_to_reclaim(ring_heard(60), listening, kNow));
}

TEST(Leases, TheLogKeepsTheLast64AndCountsAll) {
  ReclaimLog log;
  for (std::uint32_t ring = 0; ring < 100; ++ring) {
    log.note(
        {.ring = ring,
         .grounds = {.reason = ring % 4 == 0 ? ReclaimReason::drained : ReclaimReason::lease}});
  }
  const auto last = log.last();
  ASSERT_EQ(last.size(), 64u);
  EXPECT_EQ(last.front().ring, 36u);
  EXPECT_EQ(last.back().ring, 99u);
  EXPECT_EQ(log.counts(), (ReclaimLog::Counts{75, 25}));
}

TEST(Leases, TheLogLineSaysWhatBecameOfTheRingAndWhy) {
  Reclaimed reclaimed{.ring = 17,
                      .grounds = {.reason = ReclaimReason::lease, .silence_ns = 3'600'999'999'999},
                      .fate = Fate::withdrawn,
                      .frames = 384};
  EXPECT_EQ(sentence_of(reclaimed),
            "ring 17: reclaimed: its members were silent for 3600 s; 384 frames given back");
  reclaimed.fate = Fate::reset;
  EXPECT_EQ(sentence_of(reclaimed),
            "ring 17: reclaimed: its members were silent for 3600 s; 384 frames given back; it is "
            "configured: new hellos start it anew");
  reclaimed = {.ring = 3, .grounds = {.reason = ReclaimReason::drained, .silence_ns = 10 * kS}};
  EXPECT_EQ(sentence_of(reclaimed),
            "ring 3: reclaimed: it was drained, and its members were silent for 10 s; 0 frames "
            "given back");
  reclaimed = {.ring = 65536, .grounds = {.reason = ReclaimReason::owner_gone}};
  EXPECT_EQ(sentence_of(reclaimed),
            "ring 65536: reclaimed: its owner's call HoldRing has ended; 0 frames given back");
}

TEST(Leases, ARingWithAnOwnerIsNotEndedBySilence) {
  TendedRing ring = ring_heard(600);
  EXPECT_TRUE(grounds_to_reclaim(ring, Listening(), kNow));
  ring.care.keeper = Keeper::owner;
  EXPECT_FALSE(grounds_to_reclaim(ring, Listening(), kNow));
}

TEST(Leases, TheLogTellsWhoWantsToKnow) {
  ReclaimLog log;
  std::vector<std::uint32_t> told;
  log.tell_to([&told](const Reclaimed& reclaimed) { told.push_back(reclaimed.ring); });
  log.note({.ring = 5});
  log.note({.ring = 3});
  EXPECT_EQ(told, (std::vector<std::uint32_t>{5, 3}));
}

TEST(CutOff, IsWhatStillRuns) {
  TendedRing fills = ring_heard(0);
  fills.life.is_patient = true;
  fills.life.filling = 3;
  fills.life.waited_for = {1, 2};
  TendedRing owes = ring_heard(0);
  owes.spec.id = 18;
  owes.life.is_patient = true;
  owes.life.unacknowledged = {0, 3};
  TendedRing idle = ring_heard(0);
  idle.life.is_patient = true;
  TendedRing given_up = fills;
  given_up.life.is_patient = false;
  const auto busy = busy_of({idle, fills, given_up, owes});
  ASSERT_EQ(busy.size(), 2u);
  EXPECT_EQ(ids_of(busy), "17, 18");
  EXPECT_EQ(cut_off_sentence(busy[0]), "ring 17: cut off: 3 of its slots waited, the oldest for "
                                       "rank 1, rank 2");
  EXPECT_EQ(cut_off_sentence(busy[1]), "ring 18: cut off: rank 1, 0 had not acknowledged results");
}

/// A switch below stands as its ranks, and its results are for the rank after these.
TEST(CutOff, NamesASwitchBelowByItsRanks) {
  TendedRing ring = ring_heard(0);
  ring.spec.children = {
      {.ranks = {0, 1}, .port = {}, .name = {}},
      {.ranks = {1, 2}, .port = 1, .kind = ring::ChildKind::switch_below, .name = "rack"}};
  ring.spec.parent = ring::Parent{2, "spine"};
  ring.life.filling = 1;
  ring.life.waited_for = {0, 1};
  ring.life.unacknowledged = {1};
  EXPECT_EQ(cut_off_sentence(ring), "ring 17: cut off: 1 of its slots waited, the oldest for rank "
                                    "0, ranks 1-2; rank 3 had not acknowledged results");
}

} // namespace
} // namespace weir::control::leases_test
