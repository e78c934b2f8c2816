// SPDX-License-Identifier: BSD-3-Clause

/// Every collective of the host library: jobs whose ranks are threads around a switch in memory,
/// with it and without. Results are compared with plain loops over whole numbers.

#include "collective_caller.hpp"
#include "host/collective/scaling.hpp"
#include "host/collective/slice.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weir::host::collectives_test {
namespace {

using test::Caller;
using test::kUntouched;
using test::part;
using test::sum_of;
using test::Values;
using test::values_of;

class Collectives : public testing::TestWithParam<JobPlan> {};

TEST_P(Collectives, AreExactForEveryRootAndLength) {
  const JobPlan& plan = GetParam();
  const bool has_switch = plan.fallback == Fallback::none;
  HostFabric fabric(has_switch ? rings_of(plan) : std::vector<ring::RingSpec>(), plan.world);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    EXPECT_EQ(group.algorithm(), has_switch ? Algorithm::in_switch : Algorithm::ring);
    for (const std::size_t count : {0, 1, 3, 239, 1000}) {
      Caller(group, count).call_everything();
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Collectives,
    testing::Values(JobPlan{.world = 2}, JobPlan{.world = 5},
                    JobPlan{.world = 3, .rings = {4, 5, 6}},
                    JobPlan{.world = 2, .window = 1, .message_bytes = 48},
                    JobPlan{.world = 4, .rings = {1, 2}, .loss = 0.02, .seed = 4},
                    JobPlan{.world = 2, .fallback = Fallback::ring},
                    JobPlan{.world = 5, .rings = {1, 2}, .fallback = Fallback::ring},
                    JobPlan{.world = 3, .loss = 0.02, .seed = 5, .fallback = Fallback::ring}));

/// It needs no fabric: it has nobody to send to.
TEST(Collective, OfOneRankIsExactForEveryLength) {
  GroupOptions options = options_of({.world = 1, .rings = {4, 5, 6}}, 0, free_address());
  Group group(options, std::unique_ptr<FrameIo>());
  EXPECT_EQ(group.algorithm(), Algorithm::alone);
  for (const std::size_t count : {0, 1, 3, 239, 1000, 100'000}) {
    Caller(group, count).call_everything();
  }
}

TEST(Collective, ABarrierEndsForNobodyBeforeAllHaveCalledIt) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<bool> has_called = false;
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    const Call barrier{.kind = CallKind::barrier};
    if (rank == 2) {
      std::this_thread::sleep_for(milliseconds(100));
      has_called = true;
    }
    group.start(nullptr, nullptr, barrier).wait();
    EXPECT_TRUE(has_called);
  }));
}

TEST(Collective, RanksThatCallDifferentThingsLearnWhoCalledWhat) {
  struct Row {
    Call rank_1;
    const char* text;
  };

  const Call others{.kind = CallKind::broadcast, .count = 4, .root = 1};
  const std::vector<Row> rows{
      {{.kind = CallKind::all_reduce, .count = 4},
       "rank 1 calls all-reduce of 4 f32, sum; rank 0 calls broadcast of 4 f32, from rank 1"},
      {{.kind = CallKind::broadcast, .count = 4, .root = 0},
       "rank 1 calls broadcast of 4 f32, from rank 0; rank 0 calls broadcast of 4 f32, from rank "
       "1"},
      {{.kind = CallKind::barrier},
       "rank 1 calls barrier; rank 0 calls broadcast of 4 f32, from rank 1"}};
  for (const Row& row : rows) {
    const JobPlan plan{.world = 3};
    HostFabric fabric(rings_of(plan), plan.world, kSession);
    const std::string address = free_address();
    expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
      Group group(options_of(plan, rank, address), fabric.open(rank));
      std::vector<float> data(4);
      const Ending ending = ending_of(
          [&] { group.start(data.data(), data.data(), rank == 1 ? row.rank_1 : others).wait(); });
      EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
      EXPECT_EQ(ending.rank, 1);
      EXPECT_NE(ending.text.find(row.text), std::string::npos) << ending.text;
    }));
  }
}

TEST(Collective, ARootThatIsNoRankIsRefusedAndEndsNothing) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    std::vector<float> data(4, rank);
    const Call wrong{.kind = CallKind::broadcast, .count = 4, .root = 2};
    EXPECT_THROW(group.start(data.data(), data.data(), wrong), std::invalid_argument);
    group.start(data.data(), data.data(), {.kind = CallKind::broadcast, .count = 4, .root = 1})
        .wait();
    EXPECT_EQ(data, std::vector<float>(4, 1));
  }));
}

TEST(Average, IsTheSumDividedInTheElementsType) {
  const auto average = [](auto sums, DataType type, std::uint16_t world) {
    make_average({reinterpret_cast<std::uint8_t*>(sums.data()), sums.size() * sizeof(sums[0])},
                 type, world);
    return sums;
  };
  using testing::ElementsAre;
  EXPECT_THAT(average(std::vector<float>{1, -7, 0.1F}, DataType::f32, 3),
              ElementsAre(1.0F / 3, -7.0F / 3, 0.1F / 3));
  EXPECT_THAT(average(std::vector<double>{1, -7}, DataType::f64, 3),
              ElementsAre(1.0 / 3, -7.0 / 3));
  EXPECT_THAT(average(std::vector<std::int8_t>{127, -128, 5}, DataType::i8, 200),
              ElementsAre(0, 0, 0))
      << "200 is no i8";
  EXPECT_THAT(average(std::vector<std::uint8_t>{255, 7}, DataType::u8, 256), ElementsAre(0, 0));
  EXPECT_THAT(average(std::vector<std::int16_t>{-7, 7}, DataType::i16, 2), ElementsAre(-3, 3));
  EXPECT_THAT(average(std::vector<std::uint16_t>{65535}, DataType::u16, 2), ElementsAre(32767));
  EXPECT_THAT(average(std::vector<std::int32_t>{-7, 7}, DataType::i32, 2), ElementsAre(-3, 3));
  EXPECT_THAT(average(std::vector<std::uint32_t>{4294967295U}, DataType::u32, 2),
              ElementsAre(2147483647U));
  EXPECT_THAT(average(std::vector<std::int64_t>{-7}, DataType::i64, 2), ElementsAre(-3));
  EXPECT_THAT(average(std::vector<std::uint64_t>{7}, DataType::u64, 2), ElementsAre(3));
  // 3 = 0x4200 in f16 and 0x4040 in bf16; 1.5 = 0x3e00, 0x3fc0. E4M3: 3 = 0x44, 1.5 = 0x3c. E5M2: 3
  // = 0x42, 1.5 = 0x3e. A third of 1 in bf16 is 0x3eab.
  EXPECT_THAT(average(std::vector<std::uint16_t>(3000, 0x4200), DataType::f16, 2),
              testing::Each(0x3e00));
  EXPECT_THAT(average(std::vector<std::uint16_t>{0x4040}, DataType::bf16, 2), ElementsAre(0x3fc0));
  EXPECT_THAT(average(std::vector<std::uint16_t>{0x3f80}, DataType::bf16, 3), ElementsAre(0x3eab));
  EXPECT_THAT(average(std::vector<std::uint8_t>{0x44}, DataType::f8e4m3, 2), ElementsAre(0x3c));
  EXPECT_THAT(average(std::vector<std::uint8_t>{0x42}, DataType::f8e5m2, 2), ElementsAre(0x3e));
}

template <typename Element>
Factor factor_of(Element element) {
  Factor factor{};
  std::memcpy(factor.data(), &element, sizeof(element));
  return factor;
}

TEST(Multiply, RoundsOnceAndWrapsIntegers) {
  const auto product = [](auto data, DataType type, auto factor) {
    multiply({reinterpret_cast<std::uint8_t*>(data.data()), data.size() * sizeof(data[0])}, type,
             factor_of(factor));
    return data;
  };
  using testing::ElementsAre;
  EXPECT_THAT(product(std::vector<float>{1, -7, 0.1F}, DataType::f32, 0.3F),
              ElementsAre(0.3F, -7 * 0.3F, 0.1F * 0.3F));
  EXPECT_THAT(product(std::vector<double>{-7}, DataType::f64, 0.3), ElementsAre(-7 * 0.3));
  EXPECT_THAT(product(std::vector<std::int8_t>{100, -3}, DataType::i8, std::int8_t{-3}),
              ElementsAre(-44, 9)); // -300 is -44 modulo 256
  EXPECT_THAT(product(std::vector<std::uint8_t>{100}, DataType::u8, std::uint8_t{3}),
              ElementsAre(44));
  EXPECT_THAT(product(std::vector<std::int16_t>{-300}, DataType::i16, std::int16_t{3}),
              ElementsAre(-900));
  EXPECT_THAT(product(std::vector<std::uint16_t>{65535}, DataType::u16, std::uint16_t{65535}),
              ElementsAre(1));
  EXPECT_THAT(product(std::vector<std::int32_t>{-7}, DataType::i32, -6), ElementsAre(42));
  EXPECT_THAT(product(std::vector<std::uint32_t>{0x80000001}, DataType::u32, 2U), ElementsAre(2U));
  EXPECT_THAT(product(std::vector<std::int64_t>{-7}, DataType::i64, std::int64_t{1} << 40),
              ElementsAre(-7 * (std::int64_t{1} << 40)));
  EXPECT_THAT(product(std::vector<std::uint64_t>{~0ULL}, DataType::u64, std::uint64_t{2}),
              ElementsAre(~0ULL - 1));
  // 1.5 x 2 = 3, in the codes of the test above.
  EXPECT_THAT(
      product(std::vector<std::uint16_t>(3000, 0x3e00), DataType::f16, std::uint16_t{0x4000}),
      testing::Each(0x4200));
  EXPECT_THAT(product(std::vector<std::uint16_t>{0x3fc0}, DataType::bf16, std::uint16_t{0x4000}),
              ElementsAre(0x4040));
  EXPECT_THAT(product(std::vector<std::uint8_t>{0x3c}, DataType::f8e4m3, std::uint8_t{0x40}),
              ElementsAre(0x44));
  EXPECT_THAT(product(std::vector<std::uint8_t>{0x3e}, DataType::f8e5m2, std::uint8_t{0x40}),
              ElementsAre(0x42));
}

/// Rank r multiplies by r + 2. Inputs stay as they are, but in place.
TEST(Multiply, ComesBeforeEveryReduction) {
  for (const Fallback fallback : {Fallback::none, Fallback::ring}) {
    const JobPlan plan{.world = 3, .fallback = fallback};
    HostFabric fabric(fallback == Fallback::none ? rings_of(plan) : std::vector<ring::RingSpec>(),
                      plan.world);
    const std::string address = free_address();
    Values expected(900);
    for (std::uint16_t rank = 0; rank < plan.world; ++rank) {
      const Values values = values_of(rank, 900);
      for (std::size_t i = 0; i < values.size(); ++i) {
        expected[i] += values[i] * (rank + 2);
      }
    }
    expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
      Group group(options_of(plan, rank, address), fabric.open(rank));
      const Values in = values_of(rank, 900);
      Values both = in;
      const Factor factor = factor_of(rank + 2);
      const auto sum = [&](CallKind kind, const Values& from, Values& to, std::size_t count) {
        group
            .start_scaled(from.data(), to.data(),
                          {.kind = kind, .count = count, .type = DataType::i32, .root = 1}, factor)
            .wait();
      };
      Values all(900);
      sum(CallKind::all_reduce, in, all, 900);
      EXPECT_EQ(all, expected);
      sum(CallKind::all_reduce, both, both, 900);
      EXPECT_EQ(both, expected) << "in place";
      Values share(300);
      sum(CallKind::reduce_scatter, in, share, 300);
      EXPECT_EQ(share, part(expected, rank * 300U, 300));
      Values at_root(900, kUntouched);
      sum(CallKind::reduce, in, at_root, 900);
      EXPECT_EQ(at_root, rank == 1 ? expected : Values(900, kUntouched));
      EXPECT_EQ(in, values_of(rank, 900)) << "the input was touched";
      EXPECT_THROW(group.start_scaled(
                       in.data(), all.data(),
                       {.count = 1, .type = DataType::i32, .operation = Operation::max}, factor),
                   std::invalid_argument);
    }));
  }
}

TEST(Average, OfEveryReductionIsTheSameOnAllRanks) {
  for (const Fallback fallback : {Fallback::none, Fallback::ring}) {
    const JobPlan plan{.world = 3, .rings = {1, 2}, .fallback = fallback};
    HostFabric fabric(fallback == Fallback::none ? rings_of(plan) : std::vector<ring::RingSpec>(),
                      plan.world);
    const std::string address = free_address();
    expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
      Group group(options_of(plan, rank, address), fabric.open(rank));
      const auto average = [&](CallKind kind, Values& out) {
        const Values in = values_of(rank, 3 * 300);
        group
            .start(in.data(), out.data(),
                   {.kind = kind,
                    .count = kind == CallKind::reduce_scatter ? 300U : 900U,
                    .type = DataType::i32,
                    .finish = Finish::average,
                    .root = 1})
            .wait();
      };
      Values expected = sum_of(3, 900);
      std::ranges::for_each(expected, [](std::int32_t& value) { value /= 3; });
      Values all(900);
      average(CallKind::all_reduce, all);
      EXPECT_EQ(all, expected);
      Values share(300);
      average(CallKind::reduce_scatter, share);
      EXPECT_EQ(share, part(expected, rank * 300U, 300));
      Values at_root(900, kUntouched);
      average(CallKind::reduce, at_root);
      EXPECT_EQ(at_root, rank == 1 ? expected : Values(900, kUntouched));
    }));
  }
}

/// Every byte of every slice is some channel's, once, whatever the call.
TEST(Slice, ChannelsShareACallWithoutGapOrOverlap) {
  constexpr Place place{.rank = 1, .world = 3};
  constexpr std::size_t kElements = kUncutBytes / sizeof(float) + 41; // neither is even
  std::vector<std::uint8_t> in(3 * kElements * sizeof(float));
  std::vector<std::uint8_t> out(in.size());
  for (const CallKind kind : kDenseCalls) {
    for (const std::size_t channels : {1, 2, 3, 7}) {
      const Call call{.kind = kind, .count = kind == CallKind::barrier ? 0 : kElements, .root = 1};
      std::size_t sent = 0;
      std::size_t kept = 0;
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const Slice slice =
            slice_of(call, place, {.in = in.data(), .out = out.data()}, {channel, channels});
        EXPECT_EQ(slice.segment_bytes % 4, 0) << "cut within an element";
        EXPECT_TRUE(call.count == 0 || slice.segment_bytes != 0) << "a channel without a part";
        sent += slice.bytes();
        if (slice.keep_begin != slice.keep_end) {
          EXPECT_EQ(slice.out, out.data() + kept) << "channel " << channel << " of " << channels;
        }
        kept += slice.keep_end - slice.keep_begin;
      }
      const bool is_three_times =
          call.kind == CallKind::all_gather || call.kind == CallKind::reduce_scatter;
      EXPECT_EQ(sent, (is_three_times ? 3 : 1) * call.count * 4) << name_of(call.kind);
      EXPECT_EQ(kept, call.count * 4) << name_of(call.kind);
      EXPECT_EQ(kept_bytes(call, place), (call.kind == CallKind::all_gather ? 3 : 1) * kept);
    }
  }
}

/// The channel after the last exchange's has all of the next one, and nothing goes twice.
TEST(Slice, ChannelsTakeSmallCallsInTurn) {
  constexpr Place place{.rank = 1, .world = 3};
  constexpr std::size_t kMost = kUncutBytes / sizeof(float);
  std::vector<std::uint8_t> in(3 * kUncutBytes);
  std::vector<std::uint8_t> out(in.size());
  const Call call{.kind = CallKind::all_gather, .count = kMost};
  ASSERT_FALSE(cuts_segments(call, place));
  ASSERT_TRUE(cuts_segments({.kind = CallKind::all_gather, .count = kMost + 1}, place));
  for (std::uint64_t exchange = 0; exchange < 7; ++exchange) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const Slice slice =
          slice_of(call, place, {.in = in.data(), .out = out.data()}, {channel, 3, exchange});
      EXPECT_EQ(slice.segment_bytes, exchange % 3 == channel ? kUncutBytes : 0)
          << "exchange " << exchange << ", channel " << channel;
    }
  }
}

} // namespace
} // namespace weir::host::collectives_test
