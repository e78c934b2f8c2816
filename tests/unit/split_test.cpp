// SPDX-License-Identifier: BSD-3-Clause

/// Parts of a group, by colours, by lists, and copies of it: who is in them, in which order, and
/// that the group goes on beside them.

#include "host/api/group_split.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <gmock/gmock.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weir::host::split_test {
namespace {

using testing::HasSubstr;

/// Each rank of the whole gives its number's power of two, so the sum tells who took part.
std::uint32_t sum_over(Group& group, std::uint16_t rank_of_whole) {
  std::vector<std::uint32_t> data(500, 1U << rank_of_whole);
  group.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
  EXPECT_EQ(data, std::vector<std::uint32_t>(500, data.front()));
  return data.front();
}

/// Ranks on the hosts' ring.
class Splits : public testing::Test {
 protected:
  static constexpr std::uint16_t kWorld = 4;

  Splits() { plan_.fallback = Fallback::ring; }

  Group form(std::uint16_t rank) {
    return Group(options_of(plan_, rank, address_), fabric_.open(rank));
  }

  std::optional<Group> split(Group& whole, const SplitPlace& place) {
    return whole.split(place, part_of(whole), fabric_.open(whole.rank()));
  }

  static GroupOptions part_of(const Group& whole) {
    GroupOptions options = whole.options();
    options.epoch = 0;
    return options;
  }

  /// Of a split that is refused. The group goes on.
  Ending refusal(Group& whole, const SplitPlace& place) {
    const Ending ending = ending_of([&] { split(whole, place); });
    EXPECT_EQ(sum_over(whole, whole.rank()), 0xfU);
    return ending;
  }

  JobPlan plan_{.world = kWorld};
  HostFabric fabric_{{}, kWorld}; // a plain learning switch
  const std::string address_ = free_address();
};

TEST_F(Splits, EachColourIsAGroupInTheOrderOfItsKeys) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    // Ranks 1 and 3 the other way round; 0 and 2 with equal keys.
    const std::int32_t key = rank % 2 == 0 ? 7 : -rank;
    std::optional<Group> part = split(whole, {.colour = rank % 2, .key = key});
    ASSERT_TRUE(part);
    EXPECT_EQ(part->world(), 2);
    constexpr std::array<std::uint16_t, kWorld> kPlaces{0, 1, 1, 0};
    EXPECT_EQ(part->rank(), kPlaces.at(rank));
    EXPECT_EQ(part->parent_rank(part->rank()), rank);
    EXPECT_EQ(part->parent_rank(0), rank % 2 == 0 ? 0 : 3);
    EXPECT_EQ(sum_over(*part, rank), rank % 2 == 0 ? 0b0101U : 0b1010U);
    EXPECT_EQ(sum_over(whole, rank), 0b1111U);
    EXPECT_EQ(sum_over(*part, rank), rank % 2 == 0 ? 0b0101U : 0b1010U);
  }));
}

TEST_F(Splits, ARankWithoutAColourIsInNoPartAndAPartOfOneIsAlone) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    SplitPlace place;
    if (rank != 1) {
      place.colour = rank == 3 ? 5 : 4;
    }
    std::optional<Group> part = split(whole, place);
    EXPECT_EQ(part.has_value(), rank != 1);
    if (rank == 3) {
      EXPECT_EQ(part->algorithm(), Algorithm::alone);
      EXPECT_EQ(part->parent_rank(0), 3);
    }
    if (part) {
      EXPECT_EQ(sum_over(*part, rank), rank == 3 ? 0b1000U : 0b0101U);
    }
    EXPECT_EQ(sum_over(whole, rank), 0b1111U);
  }));
}

TEST_F(Splits, AListNamesThePartsRanksInTheirOrder) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    const std::vector<std::uint16_t> ranks{3, 0, 1};
    std::optional<Group> part = split(whole, place_in(ranks, rank, kWorld));
    ASSERT_EQ(part.has_value(), rank != 2);
    if (part) {
      EXPECT_EQ(part->parent_rank(part->rank()), rank);
      EXPECT_EQ(part->parent_rank(0), 3);
      EXPECT_EQ(part->parent_rank(1), 0);
      EXPECT_EQ(part->parent_rank(2), 1);
      EXPECT_EQ(sum_over(*part, rank), 0b1011U);
    }
  }));
}

TEST_F(Splits, APartOfAPartOutlivesBoth) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    auto whole = std::make_unique<Group>(form(rank));
    std::optional<Group> copy = split(*whole, {.colour = 0});
    whole.reset();
    std::optional<Group> part = split(*copy, {.colour = rank < 3 ? 1 : 2, .key = -rank});
    copy.reset();
    if (rank < 3) {
      EXPECT_EQ(part->rank(), 2 - rank);
      EXPECT_EQ(sum_over(*part, rank), 0b0111U);
    }
  }));
}

/// While other threads make calls of parts that are there already.
TEST_F(Splits, ByAnyThreadBesideOthersCalls) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    std::optional<Group> first = split(whole, {.colour = rank / 2});
    std::thread caller([&] {
      for (int call = 0; call < 50; ++call) {
        EXPECT_EQ(sum_over(*first, rank), rank < 2 ? 0b0011U : 0b1100U);
      }
    });
    std::thread splitter([&] {
      std::optional<Group> second = split(whole, {.colour = rank % 2});
      EXPECT_EQ(sum_over(*second, rank), rank % 2 == 0 ? 0b0101U : 0b1010U);
    });
    splitter.join();
    caller.join();
  }));
}

TEST_F(Splits, DifferentListsAreToldToAllRanks) {
  const auto endings = run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    const std::vector<std::uint16_t> ranks =
        rank == 2 ? std::vector<std::uint16_t>{0, 2} : std::vector<std::uint16_t>{0, 1, 2, 3};
    const Ending ending = refusal(whole, place_in(ranks, rank, kWorld));
    throw Error(*ending.code, ending.rank, ending.text);
  });
  expect_all(endings, ErrorCode::mismatch);
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.rank, 2);
    EXPECT_THAT(ending.text, HasSubstr("ranks 0 and 2 name different parts"));
  }
}

TEST_F(Splits, WhoIsInAListAndNamesNoneIsTold) {
  const auto endings = run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    const std::vector<std::uint16_t> ranks{0, 1};
    const Ending ending = refusal(whole, rank == 1 ? SplitPlace() : place_in(ranks, rank, kWorld));
    EXPECT_EQ(ending.code.has_value(), rank == 0) << ending.text;
    if (rank == 0) {
      EXPECT_EQ(ending.code, ErrorCode::mismatch);
      EXPECT_EQ(ending.rank, 1);
      EXPECT_THAT(ending.text, HasSubstr("rank 1 names no part; it is in the list of rank 0"));
    }
  });
  expect_none(endings);
}

TEST_F(Splits, AnotherCallInItsPlaceIsTold) {
  const auto endings = run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    if (rank == 3) { // as many bytes as a split exchanges
      std::vector<std::uint8_t> in(512);
      std::vector<std::uint8_t> out(in.size() * kWorld);
      whole
          .start(in.data(), out.data(),
                 {.kind = CallKind::all_gather, .count = in.size(), .type = DataType::u8})
          .wait();
      return;
    }
    const Ending ending = ending_of([&] { split(whole, {.colour = 1}); });
    EXPECT_EQ(ending.code, ErrorCode::mismatch);
    EXPECT_EQ(ending.rank, 3);
    EXPECT_THAT(ending.text, HasSubstr("rank 3 makes another call"));
  });
  expect_none(endings);
}

/// Its part learns why. The other part is formed.
TEST_F(Splits, ARankWhoseOptionsAreWrongCannotCome) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    GroupOptions options = part_of(whole);
    options.window = rank == 2 ? 0 : options.window;
    const auto make = [&] {
      return whole.split({.colour = rank % 2}, options, fabric_.open(rank));
    };
    if (rank == 2) {
      EXPECT_THROW(make(), std::invalid_argument);
    } else if (rank == 0) {
      const Ending ending = ending_of([&] { make(); });
      EXPECT_EQ(ending.code, ErrorCode::transport_failure);
      EXPECT_EQ(ending.rank, 2);
      EXPECT_THAT(ending.text, HasSubstr("rank 2 cannot come: window: found 0"));
    } else {
      std::optional<Group> part = make();
      EXPECT_EQ(sum_over(*part, rank), 0b1010U);
    }
    EXPECT_EQ(sum_over(whole, rank), 0b1111U);
  }));
}

/// The error names the rank by its number in the whole.
TEST_F(Splits, ErrorsNameRanksByTheirNumbersInTheWhole) {
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    Group whole = form(rank);
    GroupOptions options = part_of(whole);
    options.path_mtu = rank == 3 ? 512 : options.path_mtu; // another one than the other ranks'
    const Ending ending = ending_of(
        [&] { whole.split({.colour = rank % 2, .key = rank}, options, fabric_.open(rank)); });
    EXPECT_EQ(ending.code.has_value(), rank % 2 == 1);
    if (rank % 2 == 1) {
      EXPECT_EQ(ending.code, ErrorCode::mismatch);
      const int other = rank == 3 ? 1 : 3;
      EXPECT_EQ(ending.rank, other) << ending.text;
      EXPECT_THAT(ending.text, HasSubstr("of the new group is rank " + std::to_string(other)));
    }
    EXPECT_EQ(sum_over(whole, rank), 0b1111U);
  }));
}

TEST(SplitPlaces, RefuseRanksThatAreNone) {
  const std::vector<std::uint16_t> far{0, 4};
  const std::vector<std::uint16_t> twice{1, 1};
  EXPECT_THROW(place_in(far, 0, 4), std::invalid_argument);
  EXPECT_THROW(place_in(twice, 0, 4), std::invalid_argument);
  EXPECT_FALSE(place_in(std::vector<std::uint16_t>{2, 3}, 0, 4).colour);
  EXPECT_EQ(place_in(std::vector<std::uint16_t>{2, 3}, 3, 4).key, 1);
}

} // namespace
} // namespace weir::host::split_test
