// SPDX-License-Identifier: BSD-3-Clause

/// Groups that lose ranks and go on with those that are left. Here a rank that dies is a thread
/// that closes its group, which looks the same to the others; death_test.cpp kills processes.

#include "host/api/group_formation.hpp"
#include "host/api/membership.hpp"
#include "host/api/transport_options.hpp"
#include "host/shrink/shrink_membership.hpp"
#include "host_job.hpp"
#include "rank_zero.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <latch>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::host::shrink_test {
namespace {

/// A job on the hosts' ring, whose ranks can shrink.
class Shrink : public testing::Test {
 protected:
  static constexpr std::uint16_t kWorld = 4;

  Shrink() { plan_.fallback = Fallback::ring; }

  Group form(std::uint16_t rank) { return form(rank, options(rank)); }

  /// Returns when all ranks have their groups: who aborts one sooner ends the others' forming.
  Group form(std::uint16_t rank, const GroupOptions& options) {
    Group group(options, fabric_.open(rank));
    ++formed_;
    EXPECT_TRUE(test::comes_true([&] { return formed_ >= plan_.world; }));
    return group;
  }

  GroupOptions options(std::uint16_t rank) const {
    GroupOptions options = options_of(plan_, rank, address_);
    options.epoch = 0;
    return options;
  }

  /// The options that a shrink uses, but for a patience that tests can wait for.
  GroupOptions shrinking(const Group& group) const {
    GroupOptions next = group.options();
    next.epoch = 0;
    return next;
  }

  Group shrink(Group& group, std::uint16_t port) {
    return group.shrink(shrinking(group), fabric_.open(port));
  }

  JobPlan plan_{.world = kWorld};
  HostFabric fabric_{{}, kWorld}; // a plain learning switch
  const std::string address_ = free_address();
  std::atomic<unsigned> formed_ = 0; // ranks
  std::barrier<> everybody_{kWorld}; // so that nobody dies during a call that must end well
};

/// Each original rank gives its number's power of two, so the sum tells who took part.
void expect_sum(Group& group, std::uint16_t original, std::uint32_t due) {
  std::vector<std::uint32_t> data(700, 1U << original);
  group.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
  EXPECT_EQ(data, std::vector<std::uint32_t>(700, due)) << "original rank " << original;
}

void expect_end(Group& group, ErrorCode code, std::uint16_t about) {
  const Ending ending = ending_of([&] { expect_sum(group, 0, 0); });
  EXPECT_EQ(ending.code, code) << ending.text;
  EXPECT_EQ(ending.rank, about) << ending.text;
}

class OneDeath : public Shrink, public testing::WithParamInterface<int> {};

TEST_P(OneDeath, LeavesAGroupOfTheRest) {
  const auto victim = static_cast<std::uint16_t>(GetParam());
  const std::uint32_t all_but_victim = 0xfU & ~(1U << victim);
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group group = form(rank);
    expect_sum(group, rank, 0xf);
    everybody_.arrive_and_wait();
    if (rank == victim) {
      return; // without the call that the others make
    }
    expect_end(group, ErrorCode::peer_died, victim);
    Group rest = shrink(group, rank);
    EXPECT_EQ(rest.world(), 3);
    EXPECT_EQ(rest.rank(), rank - (rank > victim ? 1 : 0));
    EXPECT_GT(rest.epoch(), group.epoch());
    for (std::uint16_t i = 0; i < 3; ++i) {
      EXPECT_EQ(rest.parent_rank(i), i + (i >= victim ? 1 : 0)) << "of new rank " << i;
    }
    expect_sum(rest, rank, all_but_victim);
    expect_sum(rest, rank, all_but_victim);
    EXPECT_EQ(rest.statistics().callers_turned_away, 0);
  }));
}

INSTANTIATE_TEST_SUITE_P(Victims, OneDeath, testing::Range(0, 4));

TEST_F(Shrink, TwiceInARow) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group group = form(rank);
    everybody_.arrive_and_wait();
    if (rank == 0) {
      everybody_.arrive_and_drop();
      return;
    }
    Group three = shrink(group, rank);
    expect_sum(three, rank, 0xe);
    everybody_.arrive_and_wait();
    if (rank == 2) {
      return;
    }
    Group two = shrink(three, rank);
    EXPECT_EQ(two.world(), 2);
    EXPECT_EQ(two.parent_rank(0), 0) << "in the group of three";
    EXPECT_EQ(two.parent_rank(1), 2);
    EXPECT_EQ(two.epoch(), three.epoch() + 1);
    expect_sum(two, rank, 0xa);
  }));
}

TEST_F(Shrink, WithoutADeathIsTheSameRanksAgain) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group group = form(rank);
    Group again = shrink(group, rank);
    EXPECT_EQ(again.world(), kWorld);
    EXPECT_EQ(again.rank(), rank);
    expect_sum(again, rank, 0xf);
    const Ending old = ending_of([&] { expect_sum(group, rank, 0); });
    EXPECT_EQ(old.code, ErrorCode::aborted) << "the old group goes on";
  }));
}

TEST_F(Shrink, OfTheLastRankIsAnErrorThatSaysHowToGoOn) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group group = form(rank);
    if (rank == 3) {
      const Ending ending = ending_of([&] { shrink(group, rank); });
      EXPECT_EQ(ending.code, ErrorCode::peer_died) << ending.text;
      EXPECT_NE(ending.text.find("ranks 0, 1, 2 ended, as it seems, so one rank is left"),
                std::string::npos)
          << ending.text;
      EXPECT_NE(ending.text.find("forms a group with world 1"), std::string::npos) << ending.text;
    }
  }));
}

/// Its process lives, so nobody may say that it is dead; it may come later.
TEST_F(Shrink, WaitsForARankThatLives) {
  std::latch given_up(3);
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group group = form(rank);
    if (rank == 0) {
      return;
    }
    if (rank == 1) {
      given_up.arrive_and_wait();
    } else {
      GroupOptions hasty = shrinking(group);
      hasty.form_timeout = milliseconds(500);
      const Ending ending = ending_of([&] { group.shrink(hasty, fabric_.open(rank)); });
      EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout) << ending.text;
      EXPECT_EQ(ending.rank, 1) << ending.text;
      EXPECT_NE(ending.text.find("did not come within 500 ms"), std::string::npos) << ending.text;
      given_up.arrive_and_wait();
    }
    Group rest = shrink(group, rank);
    EXPECT_EQ(rest.world(), 3);
    expect_sum(rest, rank, 0xe);
  }));
}

TEST_F(Shrink, OfAGroupThatHasBeenShrunkIsRefused) {
  plan_.world = 2;
  expect_none(run_ranks(2, [&](std::uint16_t rank) {
    Group group = form(rank);
    Group again = shrink(group, rank);
    EXPECT_THROW(shrink(group, rank), std::invalid_argument);
    expect_sum(again, rank, 3);
  }));
}

/// They come for months, one after the other, and the queue never fills: a group closes them.
TEST_F(Shrink, CallersWaitNotUntilTheShrink) {
  plan_.world = 2;
  std::latch is_seen(2);
  expect_none(run_ranks(2, [&](std::uint16_t rank) {
    const GroupOptions own = options(rank);
    Membership membership = form_group(own, open_software_transport(own, fabric_.open(rank)));
    const std::string port = std::to_string(port_of(membership.history->listener));
    for (int caller = 0; caller < 3; ++caller) {
      const Socket stranger = connected_to("127.0.0.1:" + port);
      char byte = 0;
      EXPECT_TRUE(test::comes_true([&] {
        membership.progress(Clock::now() + milliseconds(1));
        return recv(stranger.get(), &byte, 1, MSG_DONTWAIT) == 0;
      })) << "rank "
          << rank;
    }
    is_seen.arrive_and_wait();
  }));
}

TEST_F(Shrink, NeedsALaterEpoch) {
  plan_.world = 2;
  expect_none(run_ranks(2, [&](std::uint16_t rank) {
    Group group = form(rank);
    GroupOptions next = group.options();
    next.epoch = group.epoch();
    const Ending ending = ending_of([&] { group.shrink(next, fabric_.open(rank)); });
    EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
    next.epoch = group.epoch() + 5;
    EXPECT_EQ(group.shrink(next, fabric_.open(rank)).epoch(), group.epoch() + 5);
  }));
}

TEST_F(Shrink, HasNoEpochAfterTheLast) {
  plan_.world = 2;
  expect_none(run_ranks(2, [&](std::uint16_t rank) {
    GroupOptions last = options(rank);
    last.epoch = UINT32_MAX;
    Group group = form(rank, last);
    const Ending ending = ending_of([&] { shrink(group, rank); });
    EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
    EXPECT_EQ(ending.text, "epoch: the ranks have had 4294967295, the last there is; allowed: to "
                           "form a new group");
  }));
}

TEST_F(Shrink, RefusesOptionsWithADefectAndGoesOn) {
  plan_.world = 2;
  expect_none(run_ranks(2, [&](std::uint16_t rank) {
    Group group = form(rank);
    GroupOptions wrong = shrinking(group);
    wrong.window = 0;
    EXPECT_THROW(group.shrink(wrong, fabric_.open(rank)), std::invalid_argument);
    Group again = shrink(group, rank);
    expect_sum(again, rank, 3);
  }));
}

/// Ring 1 has ranks 0, 1, 2; ring 2 has ranks 1 and 2.
TEST(ShrinkInTheSwitch, GoesOnWithARingOfFewerRanks) {
  JobPlan plan{.world = 3};
  auto rings = rings_of(plan);
  rings.push_back(rings[0]);
  rings[1].id = 2;
  rings[1].members.erase(rings[1].members.begin());
  HostFabric fabric(rings, plan.world, kSession);
  std::barrier everybody(plan.world);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    expect_sum(group, rank, 7);
    everybody.arrive_and_wait();
    if (rank == 0) {
      return;
    }
    GroupOptions next = group.options();
    next.epoch = 0;
    next.rings = {2};
    Group rest = group.shrink(next, fabric.open(rank));
    EXPECT_EQ(rest.algorithm(), Algorithm::in_switch);
    expect_sum(rest, rank, 6);
  }));
}

// -------------------------------------------------------------------------------------- membership

TEST(ShrinkMembership, TellsWhoMayGoOn) {
  struct Row {
    std::vector<std::uint16_t> members;
    std::set<std::uint16_t> left_out;
    bool may_go_on;
  };

  const std::vector<Row> rows{
      {{3}, {}, true},         // all others have ended
      {{0, 1, 2}, {3}, true},  // most of four
      {{1, 2, 3}, {0}, true},  //
      {{0, 1}, {2, 3}, true},  // half, with rank 0
      {{2, 3}, {0, 1}, false}, // the other half
      {{2, 3}, {1}, false},    // rank 0 has ended; it may have been in a group with 1
      {{0, 3}, {1}, true},     //
      {{0}, {1, 2, 3}, false}, //
      {{1, 2}, {3}, false},    //
  };
  for (const Row& row : rows) {
    EXPECT_EQ(may_go_on({row.members, row.left_out}, 4), row.may_go_on)
        << testing::PrintToString(row.members) << " without "
        << testing::PrintToString(row.left_out);
  }
}

/// Of all ways to cut five ranks in two parts that do not hear each other, while some have died.
TEST(ShrinkMembership, NeverLetsTwoPartsGoOn) {
  constexpr std::uint16_t kRanks = 5;
  for (unsigned dead = 0; dead < 1U << kRanks; ++dead) {
    for (unsigned side = 0; side < 1U << kRanks; ++side) {
      ShrinkMembership one;
      ShrinkMembership other;
      for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        const bool lives = (dead >> rank & 1U) == 0;
        const bool is_in_one = (side >> rank & 1U) != 0;
        if (lives) {
          (is_in_one ? one : other).members.push_back(rank);
          (is_in_one ? other : one).left_out.insert(rank);
        }
      }
      if (!one.members.empty() && !other.members.empty()) {
        EXPECT_FALSE(may_go_on(one, kRanks) && may_go_on(other, kRanks))
            << "dead " << dead << ", side " << side;
      }
    }
  }
}

TEST(ShrinkMembership, IsReadAsWritten) {
  const ShrinkMembership membership{.members = {0, 2, 255}, .left_out = {1, 7}};
  const std::vector<std::uint8_t> bytes{0, 3, 0, 0, 0, 2, 0, 255, 0, 1, 0, 7};
  EXPECT_EQ(encode(membership), bytes);
  const std::optional<ShrinkMembership> read = decode_membership(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->members, membership.members);
  EXPECT_EQ(read->left_out, membership.left_out);
}

TEST(ShrinkMembership, IsNotReadFromOtherBytes) {
  using Body = std::vector<std::uint8_t>;
  for (const Body& body : {Body{}, Body{0}, Body{0, 1}, Body{0, 2, 0, 1}, Body{0, 1, 0, 1, 0},
                           Body{0, 2, 0, 1, 0, 1}, Body{0, 2, 0, 2, 0, 1}}) {
    EXPECT_FALSE(decode_membership(body)) << testing::PrintToString(body);
  }
}

} // namespace
} // namespace weir::host::shrink_test
