// SPDX-License-Identifier: BSD-3-Clause

/// weir-worker's sizes, calls, buffers, figures and table, and a sweep of two ranks, one of which
/// is slow or wrong. tests/smoke runs the program.

#include "host_job.hpp"
#include "worker/bandwidth.hpp"
#include "worker/call_buffers.hpp"
#include "worker/call_choice.hpp"
#include "worker/latencies.hpp"
#include "worker/rank_calls.hpp"
#include "worker/size_range.hpp"
#include "worker/sweep.hpp"
#include "worker/sweep_report.hpp"
#include "worker/tensor_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weir::app::worker_test {
namespace {

using host::Call;
using host::CallKind;
using testing::ElementsAre;
using testing::HasSubstr;
using Sizes = std::vector<std::uint64_t>;

TEST(SizeRange, GrowsByFactorOrIncrement) {
  EXPECT_EQ(sizes_of({.begin = 8, .end = 64}), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(sizes_of({.begin = 8, .end = 63}), (Sizes{8, 16, 32}));
  EXPECT_EQ(sizes_of({.begin = 3, .end = 100, .factor = 5}), (Sizes{3, 15, 75}));
  EXPECT_EQ(sizes_of({.begin = 8, .end = 40, .increment = 16}), (Sizes{8, 24, 40}));
  EXPECT_EQ(sizes_of({.begin = 8, .end = 39, .increment = 16}), (Sizes{8, 24}));
  EXPECT_EQ(sizes_of({.begin = 100, .end = 100}), Sizes{100});
  EXPECT_EQ(sizes_of({.begin = 100, .end = 99}), Sizes{});
}

TEST(SizeRange, EndsAtTheLargestNumber) {
  constexpr std::uint64_t large = std::uint64_t{1} << 62;
  EXPECT_EQ(sizes_of({.begin = large, .end = UINT64_MAX, .factor = 5}), Sizes{large});
  EXPECT_EQ(sizes_of({.begin = UINT64_MAX - 1, .end = UINT64_MAX, .increment = 5}),
            Sizes{UINT64_MAX - 1});
  EXPECT_EQ(sizes_of({.begin = 1, .end = UINT64_MAX, .increment = 1}).size(), kMostSizes + 1);
}

TEST(Latencies, AreNearestRanks) {
  Sizes hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1);
  std::shuffle(hundred.begin(), hundred.end(), std::mt19937(1));
  const Latencies of_hundred = latencies_of(hundred);
  EXPECT_EQ(of_hundred.min, 1U);
  EXPECT_EQ(of_hundred.p50, 50U);
  EXPECT_EQ(of_hundred.p95, 95U);
  EXPECT_EQ(of_hundred.p99, 99U);
  EXPECT_EQ(of_hundred.max, 100U);
  EXPECT_DOUBLE_EQ(of_hundred.mean, 50.5);

  const Latencies of_five = latencies_of({50, 10, 40, 20, 30}); // 2.5th, 4.75th, 4.95th
  EXPECT_EQ(of_five.p50, 30U);
  EXPECT_EQ(of_five.p95, 50U);
  EXPECT_EQ(of_five.p99, 50U);

  const Latencies of_one = latencies_of({7});
  EXPECT_EQ(of_one.min, 7U);
  EXPECT_EQ(of_one.p50, 7U);
  EXPECT_EQ(of_one.max, 7U);
}

// Factors of nccl-tests' doc/PERFORMANCE.md: all-reduce 2(n-1)/n, all-gather and reduce-scatter
// (n-1)/n, broadcast and reduce 1.
TEST(Bandwidth, IsThatOfNcclTests) {
  struct Case {
    CallKind kind;
    std::uint16_t world;
    std::uint64_t count; // of bytes
    double algorithm;    // for half a second
    double bus;
  };

  for (const Case& one : {Case{CallKind::all_reduce, 2, 1'000'000'000, 2, 2},
                          Case{CallKind::all_reduce, 8, 1'000'000'000, 2, 3.5},
                          Case{CallKind::reduce, 8, 1'000'000'000, 2, 2},
                          Case{CallKind::broadcast, 8, 1'000'000'000, 2, 2},
                          Case{CallKind::all_gather, 8, 125'000'000, 2, 1.75},
                          Case{CallKind::reduce_scatter, 4, 250'000'000, 2, 1.5},
                          Case{CallKind::barrier, 8, 0, 0, 0}}) {
    const Call call{.kind = one.kind, .count = one.count, .type = DataType::u8};
    const Bandwidth bandwidth = bandwidth_of(call, one.world, 0.5);
    EXPECT_DOUBLE_EQ(bandwidth.algorithm, one.algorithm) << name_of(one.kind);
    EXPECT_DOUBLE_EQ(bandwidth.bus, one.bus) << name_of(one.kind) << " of " << one.world;
  }
}

std::vector<std::string> described(const std::vector<Call>& calls) {
  std::vector<std::string> texts;
  for (const Call& call : calls) {
    texts.push_back(host::describe(call));
  }
  return texts;
}

TEST(CallChoice, LeavesOutWhatTypesDoNotHave) {
  const CallChoice choice{
      .kinds = {CallKind::reduce, CallKind::broadcast, CallKind::barrier},
      .types = {DataType::f32, DataType::i8},
      .reductions = {Reduction{}, Reduction{Operation::bitwise_and}, *reduction_named("average")},
      .root = 1};
  EXPECT_THAT(described(kinds_of_calls(choice)),
              ElementsAre("reduce of 0 f32, sum, to rank 1", "reduce of 0 f32, average, to rank 1",
                          "reduce of 0 i8, sum, to rank 1", "reduce of 0 i8, and, to rank 1",
                          "reduce of 0 i8, average, to rank 1", "broadcast of 0 f32, from rank 1",
                          "broadcast of 0 i8, from rank 1", "barrier"));
}

TEST(CallChoice, CutsSizesToWholeElementsOfEachRank) {
  const Sizes sizes{8, 15, 16, 20, 32};
  const auto counts = [&](CallKind kind) {
    Sizes found;
    for (const Call& call : with_sizes({.kind = kind}, 4, sizes)) {
      found.push_back(call.count);
    }
    return found;
  };
  EXPECT_EQ(counts(CallKind::all_reduce), (Sizes{2, 3, 4, 5, 8}));
  EXPECT_EQ(counts(CallKind::all_gather), (Sizes{1, 2}));
  EXPECT_EQ(counts(CallKind::barrier), Sizes{0});
  EXPECT_EQ(bytes_of({.kind = CallKind::all_gather, .count = 2}, 4), 32U);
}

TEST(CallBuffers, InPlaceAsTheApiHasIt) {
  constexpr host::Place place{.rank = 1, .world = 3};
  const Call gather{.kind = CallKind::all_gather, .count = 5, .type = DataType::i16};
  const Call scatter{.kind = CallKind::reduce_scatter, .count = 5, .type = DataType::i16};
  const Call reduce{.kind = CallKind::reduce, .count = 15, .type = DataType::i16};
  const std::vector<Call> calls{gather, scatter, reduce};
  const std::vector<Placement> placements{Placement::in_place, Placement::out_of_place};
  TensorMemory memory(calls, placements, place);

  CallBuffers buffers = memory.buffers_of(gather, Placement::in_place);
  EXPECT_EQ(buffers.result.size(), 30U);
  EXPECT_EQ(buffers.input.size(), 10U);
  EXPECT_EQ(buffers.input.data(), buffers.result.data() + 10);
  buffers = memory.buffers_of(scatter, Placement::in_place);
  EXPECT_EQ(buffers.input.size(), 30U);
  EXPECT_EQ(buffers.result.data(), buffers.input.data() + 10);
  buffers = memory.buffers_of(scatter, Placement::out_of_place);
  EXPECT_EQ(buffers.result.size(), 10U);
  EXPECT_TRUE(buffers.result.data() < buffers.input.data() ||
              buffers.result.data() >= buffers.input.data() + 30);
  EXPECT_TRUE(memory.buffers_of(reduce, Placement::in_place).result.empty()); // the root is rank 0
}

const std::vector<FoldTree> kFlat{FoldTree::flat(2)};

TEST(TensorValues, CountEveryWrongElement) {
  constexpr std::uint64_t count = 40'000; // three blocks
  const Call call{.kind = CallKind::broadcast, .count = count, .root = 1};
  const TensorId id{.epoch = 3, .repetition = 4};
  std::vector<std::byte> result(count * sizeof(float));
  fill_tensor(result, id, 1, 0, DataType::f32);
  EXPECT_EQ(find_mismatches(result, id, call, {0, 2}, kFlat).count, 0U);

  for (const std::size_t element : {20'000U, 20'001U, 39'999U}) {
    result[element * sizeof(float) + 2] ^= std::byte{1};
  }
  const Mismatches wrong = find_mismatches(result, id, call, {0, 2}, kFlat);
  EXPECT_EQ(wrong.count, 3U);
  EXPECT_EQ(wrong.first.index, 20'000U);
  EXPECT_NE(wrong.first.expected, wrong.first.found);
}

/// Two blocks of f32, of which each ring carries a half.
TEST(TensorValues, AreFoldedInTheOrderOfTheRingThatCarriesThem) {
  constexpr std::uint64_t count = 32'768;
  constexpr std::uint64_t half = count / 2;
  const Call call{.count = count};
  const TensorId id{.epoch = 3, .repetition = 4};
  const std::vector<FoldTree> trees{FoldTree::flat(3), *FoldTree::parse("[0,[1,2]]")};
  std::vector<float> result(count);
  std::vector<std::vector<float>> in(3, result);
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    fill_tensor(std::as_writable_bytes(std::span(in[rank])), id, rank, 0, DataType::f32);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    result[i] = i < half ? (in[0][i] + in[1][i]) + in[2][i] : in[0][i] + (in[1][i] + in[2][i]);
  }
  const auto found = std::as_bytes(std::span(result));
  EXPECT_EQ(find_mismatches(found, id, call, {0, 3}, trees).count, 0U);
  for (const FoldTree& tree : trees) {
    EXPECT_GT(find_mismatches(found, id, call, {0, 3}, {&tree, 1}).count, 0U);
  }
  const Call scatter{.kind = CallKind::reduce_scatter, .count = half / 2}; // three shares of each
  const std::size_t border = (3 * half / 2 / 2) - half / 2;                // in rank 1's
  std::vector<float> kept(half / 2);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::size_t at = half / 2 + i;
    kept[i] =
        i < border ? (in[0][at] + in[1][at]) + in[2][at] : in[0][at] + (in[1][at] + in[2][at]);
  }
  EXPECT_EQ(find_mismatches(std::as_bytes(std::span(kept)), id, scatter, {1, 3}, trees).count, 0U);
}

/// Sums of halves of f32's unit in the last place tell the order of additions.
TEST(FoldTree, FoldsLevelByLevel) {
  const std::vector<float> values{1.0F, 0x1p-24F, 0x1p-24F, 0x1p-24F};
  std::vector<const std::byte*> inputs;
  for (const float& value : values) {
    inputs.push_back(reinterpret_cast<const std::byte*>(&value));
  }
  const auto fold = [&](const FoldTree& tree) {
    float sum = 0;
    tree.reduce({reinterpret_cast<std::byte*>(&sum), sizeof sum}, inputs,
                op::reference_kernel(DataType::f32, Operation::sum));
    return sum;
  };
  EXPECT_EQ(fold(FoldTree::flat(4)), 1.0F) << "each half is rounded away";
  EXPECT_EQ(fold(FoldTree()), 1.0F);
  EXPECT_EQ(fold(*FoldTree::parse("[0,1,2,3]")), 1.0F);
  EXPECT_EQ(fold(*FoldTree::parse("[[0],[1,2,3]]")), 1.0F + 0x1p-23F + 0x1p-24F);
  EXPECT_EQ(fold(*FoldTree::parse("[0,[1,[2,3]]]")), 1.0F + 0x1p-23F + 0x1p-24F);
  EXPECT_EQ(fold(*FoldTree::parse("[[0,1],[2,3]]")), 1.0F + 0x1p-23F);
}

/// As above: 1, and three halves of its unit.
TEST(FoldTree, FoldsRanksOfANicInThePlaceOfTheirLeader) {
  const std::vector<float> values{1.0F, 0x1p-24F, 0x1p-24F, 0x1p-24F};
  std::vector<const std::byte*> inputs;
  for (const float& value : values) {
    inputs.push_back(reinterpret_cast<const std::byte*>(&value));
  }
  const auto fold = [&](const FoldTree& tree, const std::vector<std::uint16_t>& leaders) {
    float sum = 0;
    tree.with_leaders(leaders).reduce({reinterpret_cast<std::byte*>(&sum), sizeof sum}, inputs,
                                      op::reference_kernel(DataType::f32, Operation::sum));
    return sum;
  };
  const FoldTree flat = FoldTree::flat(4);
  EXPECT_EQ(fold(flat, {0, 1, 2, 3}), 1.0F) << "each has a NIC of its own";
  EXPECT_EQ(fold(flat, {0, 0, 0, 0}), 1.0F) << "all have one";
  EXPECT_EQ(fold(flat, {0, 1, 1, 1}), 1.0F + 0x1p-23F + 0x1p-24F);
  EXPECT_EQ(fold(flat, {0, 1, 0, 1}), 1.0F + 0x1p-23F) << "1 and 3 are folded first";
  EXPECT_EQ(fold(*FoldTree::parse("[[0,1],[2,3]]"), {0, 0, 2, 2}), 1.0F + 0x1p-23F);
  EXPECT_EQ(fold(*FoldTree::parse("[[0],[1,2,3]]"), {0, 1, 1, 1}), 1.0F + 0x1p-23F + 0x1p-24F);
  EXPECT_EQ(fold(*FoldTree::parse("[[0,1,2],[3]]"), {0, 0, 0, 0}), 1.0F) << "no other leads";
}

TEST(FoldTree, TakesListsOfTheRanksInOrder) {
  EXPECT_EQ(FoldTree::parse("[[0,1,2],[3,4]]")->ranks(), 5);
  for (const char* text : {"", "0", "[", "[]", "[0", "[0]]", "[0,2]", "[1,0]", "[0,,1]", "[0 ,1]",
                           "[[0,1],[1]]", "[0,1],", "[0,-1]", "[0,x]"}) {
    EXPECT_FALSE(FoldTree::parse(text)) << text;
  }
}

Measurement measured(std::uint64_t nanoseconds, std::optional<std::uint64_t> wrong) {
  return {latencies_of({nanoseconds, 3 * nanoseconds}), wrong};
}

TEST(SweepReport, HasNcclTestsColumnsAndThenLatencies) {
  const std::vector<Placement> both{Placement::in_place, Placement::out_of_place};
  const SweepRow row{.call = {.kind = CallKind::all_reduce, .count = 250'000},
                     .out_of_place = measured(250'000, std::nullopt),
                     .in_place = measured(500'000, 17)};
  // Two ranks: 1 MB in 0.5 ms are 2 GB/s, and in 1 ms 1 GB/s, on the bus as well.
  EXPECT_EQ(table_row(row, both, 2),
            "     1000000       250000      f32      sum    -1"
            "     500.0    2.000    2.000     N/A    1000.0    1.000    1.000      17"
            "     250.0     250.0     750.0     750.0     750.0"
            "     500.0     500.0    1500.0    1500.0    1500.0\n");

  const SweepRow rooted{.call = {.kind = CallKind::broadcast, .count = 2, .root = 1},
                        .out_of_place = {},
                        .in_place = measured(4'000, 0)};
  EXPECT_EQ(table_row(rooted, both, 2),
            "           8            2      f32     none     1"
            "         -        -        -       -      8.00    0.001    0.001       0"
            "         -         -         -         -         -"
            "      4.00      4.00     12.00     12.00     12.00\n");
  const std::vector<Placement> one{Placement::in_place};
  EXPECT_EQ(table_row(rooted, one, 2), "           8            2      f32     none     1"
                                       "      8.00    0.001    0.001       0"
                                       "      4.00      4.00     12.00     12.00     12.00\n");
}

TEST(SweepReport, SumsUp) {
  const Call call{.kind = CallKind::all_reduce, .count = 250'000};
  const std::vector<SweepRow> rows{
      {call, measured(250'000, 3), measured(500'000, 0)}, // 2 and 1 GB/s
      {call, std::nullopt, measured(500'000, 4)},
      {{.kind = CallKind::barrier}, std::nullopt, measured(1'000, 0)}};
  EXPECT_EQ(wrong_elements_of(rows), 7U);
  EXPECT_EQ(sweep_ending(rows, 2),
            "#\n# Wrong elements: 7 FAILED\n# Average bus bandwidth: 1.333 GB/s\n");
  const std::vector<SweepRow> unchecked{{call, std::nullopt, measured(500'000, std::nullopt)}};
  EXPECT_EQ(wrong_elements_of(unchecked), std::nullopt);
  EXPECT_THAT(sweep_ending(unchecked, 2), HasSubstr("Wrong elements: nothing was checked\n"));
  EXPECT_THAT(sweep_json({.place = {0, 2}, .algorithm = "ring", .reason = "found \"x\""}, {},
                         unchecked, std::nullopt),
              HasSubstr(R"("reason": "found \"x\"", "rings": [], "missing_rings": "", )"));
  EXPECT_THAT(sweep_json({.place = {0, 2}, .rings = {1, 7}, .missing_rings = "ring 2 is left out"},
                         {}, unchecked, std::nullopt),
              HasSubstr(R"("rings": [1, 7], "missing_rings": "ring 2 is left out", )"));
}

TEST(SweepReport, WritesTimesWithAboutFourDigits) {
  EXPECT_EQ(microseconds_text(8'254), "8.25");
  EXPECT_EQ(microseconds_text(123'449), "123.4");
  EXPECT_EQ(microseconds_text(56'789'400), "56789");
}

/// A group's calls. Keeps their kinds, and may do something after each.
class WatchedCalls : public GroupCalls {
 public:
  using AfterCall = std::function<void(const Call& call, std::byte* out)>;

  WatchedCalls(host::Group& group, AfterCall after)
      : GroupCalls(group, group.rank() == 1 ? Waiting::spin : Waiting::sleep),
        after_(std::move(after)) {}

  void make(const void* in, void* out, const Call& call) override {
    GroupCalls::make(in, out, call);
    kinds.push_back(call.kind);
    after_(call, static_cast<std::byte*>(out));
  }

  std::vector<CallKind> kinds;

 private:
  AfterCall after_;
};

class Notes : public SweepWatcher {
 public:
  void call_begins(const Call& /*call*/, Placement /*placement*/,
                   std::uint32_t /*iteration*/) override {
    ++calls;
  }

  void result_is_wrong(const std::string& what) override { wrong.push_back(what); }

  void row_is_done(const SweepRow& /*row*/) override { ++rows; }

  int calls = 0;
  int rows = 0;
  std::vector<std::string> wrong;
};

/// What a rank has after a sweep.
struct Outcome {
  std::vector<SweepRow> rows;
  std::uint64_t own_wrong = 0;
  Notes notes;
  std::vector<CallKind> kinds;
};

constexpr std::uint64_t kPauseNs = 500'000'000; // longer than any call
constexpr std::chrono::nanoseconds kPause{kPauseNs};
constexpr std::uint64_t kElements = 300; // several messages

SweepOptions small_sweep() {
  return {.calls = {{.kind = CallKind::all_reduce, .count = kElements}},
          .placements = {Placement::in_place},
          .warm_ups = 1,
          .iterations = 3,
          .checked = 1};
}

/// What a rank does after a call that is measured, whose number counts from 1.
using AfterMeasured = std::function<void(std::uint16_t rank, int number, std::byte* out)>;

void nothing(std::uint16_t /*rank*/, int /*number*/, std::byte* /*out*/) {}

/// A sweep of two ranks.
std::vector<Outcome> swept(const SweepOptions& options, const AfterMeasured& after) {
  const host::JobPlan plan;
  test::HostFabric fabric(host::rings_of(plan), plan.world);
  const std::string address = host::free_address();
  std::vector<Outcome> outcomes(plan.world);
  host::expect_none(host::run_ranks(plan.world, [&](std::uint16_t rank) {
    TensorMemory memory(options.calls, options.placements, {rank, plan.world});
    host::Group group(host::options_of(plan, rank, address), fabric.open(rank));
    int number = 0;
    WatchedCalls calls(group, [&](const Call& call, std::byte* out) {
      if (call.kind == CallKind::all_reduce && call.type == DataType::f32) {
        after(rank, ++number, out);
      }
    });
    Outcome& outcome = outcomes[rank];
    Sweep sweep(options, calls, memory, outcome.notes);
    outcome.rows = sweep.run();
    outcome.own_wrong = sweep.own_wrong();
    outcome.kinds = calls.kinds;
  }));
  return outcomes;
}

TEST(Sweep, TimesAreTheSlowestRanks) {
  const auto outcomes =
      swept(small_sweep(), [](std::uint16_t rank, int number, std::byte* /*out*/) {
        if (rank == 1 && number == 2) { // the first that is timed
          std::this_thread::sleep_for(kPause);
        }
      });
  for (const Outcome& outcome : outcomes) {
    const Latencies& latencies = outcome.rows.at(0).in_place.value().latencies;
    EXPECT_GE(latencies.max, kPauseNs);
    EXPECT_LT(latencies.min, kPauseNs);
    EXPECT_FALSE(outcome.rows[0].out_of_place);
  }
  EXPECT_EQ(outcomes[0].rows[0].in_place->latencies.p50,
            outcomes[1].rows[0].in_place->latencies.p50);
}

TEST(Sweep, WarmUpsAreNotTimed) {
  const auto outcomes =
      swept(small_sweep(), [](std::uint16_t rank, int number, std::byte* /*out*/) {
        if (rank == 1 && number == 1) {
          std::this_thread::sleep_for(kPause);
        }
      });
  EXPECT_LT(outcomes[0].rows.at(0).in_place.value().latencies.max, kPauseNs);
}

TEST(Sweep, CountsWrongElementsOfAllRanks) {
  const auto outcomes = swept(small_sweep(), [](std::uint16_t rank, int number, std::byte* out) {
    if (number == 4) { // the last, which is checked
      out[(4 + rank) * sizeof(float)] ^= std::byte{1};
      out[(kElements - 1) * sizeof(float)] ^= static_cast<std::byte>(rank);
    }
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.rows.at(0).in_place.value().wrong, 3U);
    EXPECT_EQ(wrong_elements_of(outcome.rows), 3U);
  }
  EXPECT_EQ(outcomes[0].own_wrong, 1U);
  EXPECT_EQ(outcomes[1].own_wrong, 2U);
  EXPECT_THAT(outcomes[0].notes.wrong,
              ElementsAre(HasSubstr("rank 0, all-reduce of 300 f32, sum, in-place: 1 of 300 "
                                    "elements; the first is 4: expected 0x")));
  EXPECT_THAT(outcomes[1].notes.wrong,
              ElementsAre(HasSubstr("2 of 300 elements; the first is 5:")));
}

TEST(Sweep, ChecksTheLastCallsAlone) {
  const auto spoil_all_but_last = [](std::uint16_t rank, int number, std::byte* out) {
    out[0] ^= rank == 1 && number < 4 ? std::byte{1} : std::byte{0};
  };
  EXPECT_EQ(swept(small_sweep(), spoil_all_but_last)[0].rows.at(0).in_place.value().wrong, 0U);
  SweepOptions all = small_sweep();
  all.checked = 3;
  EXPECT_EQ(swept(all, spoil_all_but_last)[0].rows.at(0).in_place.value().wrong, 2U);
  SweepOptions none = small_sweep();
  none.checked = 0;
  EXPECT_EQ(swept(none, spoil_all_but_last)[0].rows.at(0).in_place.value().wrong, std::nullopt);
}

TEST(Sweep, MeetsInABarrierBeforeEachCall) {
  SweepOptions options = small_sweep();
  options.iterations = 1;
  const Outcome outcome = swept(options, nothing)[0];
  constexpr CallKind barrier = CallKind::barrier;
  constexpr CallKind call = CallKind::all_reduce;
  EXPECT_THAT(outcome.kinds, ElementsAre(barrier, call, barrier, call, call, call));
  EXPECT_EQ(outcome.notes.calls, 2);
  EXPECT_EQ(outcome.notes.rows, 1);
}

} // namespace
} // namespace weir::app::worker_test
