// SPDX-License-Identifier: BSD-3-Clause

/// Sparse all-reduces of whole jobs: ranks are threads around a switch in memory, with it and
/// without. Results are compared with dense tensors that are 0 where a rank has nothing, folded by
/// the slow kernel.

#include "host/collective/sparse_all_reduce.hpp"
#include "host_job.hpp"
#include "op/kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <latch>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::host::sparse_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Indices = std::vector<std::int64_t>;

/// One rank's input.
struct Part {
  Indices indices;
  Bytes values;
};

/// A call, and how much each rank brings: units in a hundred.
struct Scenario {
  std::uint64_t count = 0;
  std::uint64_t block = 1;
  std::vector<unsigned> percents; // of ranks 0, 1, …; the last one is that of all others
  DataType type = DataType::f32;
  Operation operation = Operation::sum;

  std::size_t unit_bytes() const { return std::max<std::uint64_t>(block, 1) * element_size(type); }

  std::uint64_t units() const {
    const std::uint64_t unit = std::max<std::uint64_t>(block, 1);
    return (count + unit - 1) / unit;
  }

  SparseTensor tensor(const Part& part) const {
    return {.count = count, .block = block, .indices = part.indices, .values = part.values.data()};
  }

  Call call() const { return {.type = type, .operation = operation}; }
};

/// Any bits, so also NaN, infinities and -0.
Part part_of(const Scenario& scenario, std::uint16_t rank) {
  std::mt19937_64 random(rank + 17 * scenario.count);
  const unsigned percent =
      scenario.percents[std::min<std::size_t>(rank, scenario.percents.size() - 1)];
  Part part;
  for (std::uint64_t unit = 0; unit < scenario.units(); ++unit) {
    if (random() % 100 < percent) {
      part.indices.push_back(static_cast<std::int64_t>(unit));
    }
  }
  part.values.resize(part.indices.size() * scenario.unit_bytes());
  std::ranges::generate(part.values, [&] { return static_cast<std::uint8_t>(random()); });
  return part;
}

/// The whole tensor of a rank, with room for a whole last unit.
Bytes dense_of(const Scenario& scenario, const Part& part) {
  Bytes dense(scenario.units() * scenario.unit_bytes());
  for (std::size_t i = 0; i < part.indices.size(); ++i) {
    std::memcpy(dense.data() + static_cast<std::size_t>(part.indices[i]) * scenario.unit_bytes(),
                part.values.data() + i * scenario.unit_bytes(), scenario.unit_bytes());
  }
  dense.resize(scenario.count * element_size(scenario.type));
  return dense;
}

Bytes dense_result(const Scenario& scenario, std::uint16_t world) {
  std::vector<Bytes> tensors;
  std::vector<const std::byte*> inputs;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    tensors.push_back(dense_of(scenario, part_of(scenario, rank)));
  }
  for (const Bytes& tensor : tensors) {
    inputs.push_back(reinterpret_cast<const std::byte*>(tensor.data()));
  }
  Bytes result(tensors[0].size());
  if (!result.empty()) {
    op::reference_kernel(scenario.type, scenario.operation)(
        reinterpret_cast<std::byte*>(result.data()), inputs.data(), world, result.size(), {});
  }
  return result;
}

std::set<std::int64_t> union_of(const Scenario& scenario, std::uint16_t world) {
  std::set<std::int64_t> all;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    const Part part = part_of(scenario, rank);
    all.insert(part.indices.begin(), part.indices.end());
  }
  return all;
}

/// The blocks that have a unit of `units`.
Indices blocks_of(const std::set<std::int64_t>& units, std::uint64_t units_in_block) {
  std::set<std::int64_t> blocks;
  for (const std::int64_t unit : units) {
    blocks.insert(unit / static_cast<std::int64_t>(units_in_block));
  }
  return {blocks.begin(), blocks.end()};
}

SparseResult reduced(Group& group, const Scenario& scenario) {
  const Part part = part_of(scenario, group.rank());
  const Group::SparseCall call = group.start_sparse(scenario.tensor(part), scenario.call());
  Group::SparseCall copy = call;
  copy.pending.wait();
  EXPECT_TRUE(call.result->is_done());
  return call.result->result();
}

void expect_exact(const Scenario& scenario, std::uint16_t world, const SparseResult& result) {
  const std::uint64_t unit = std::max<std::uint64_t>(scenario.block, 1);
  const std::size_t block_bytes = result.block * element_size(scenario.type);
  if (result.form == SparseForm::dense) {
    ASSERT_EQ(result.indices.size() * result.block,
              (scenario.count + result.block - 1) / result.block * result.block);
  } else {
    ASSERT_EQ(result.indices, blocks_of(union_of(scenario, world), result.block / unit));
  }
  ASSERT_EQ(result.values.size(), result.indices.size() * block_bytes);
  Bytes expected = dense_result(scenario, world);
  expected.resize((expected.size() + block_bytes - 1) / block_bytes * block_bytes);
  for (std::size_t i = 0; i < result.indices.size(); ++i) {
    const auto* due = expected.data() + static_cast<std::size_t>(result.indices[i]) * block_bytes;
    ASSERT_EQ(std::memcmp(due, result.values.data() + i * block_bytes, block_bytes), 0)
        << "block " << result.indices[i] << " of " << name_of(scenario.type);
  }
}

/// Runs body(group) on every rank.
void run_groups(const JobPlan& plan, const std::function<void(Group&)>& body) {
  const bool has_switch = plan.fallback == Fallback::none;
  HostFabric fabric(has_switch ? rings_of(plan) : std::vector<ring::RingSpec>(), plan.world,
                    kSession);
  const std::string address = free_address();
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    Group group(options_of(plan, rank, address), fabric.open(rank));
    body(group);
  }));
}

class SparseAllReduces : public testing::TestWithParam<JobPlan> {};

TEST_P(SparseAllReduces, HaveTheBitsOfDenseOnes) {
  const std::vector<Scenario> scenarios{
      {.count = 0, .percents = {100}},
      {.count = 1, .percents = {0}},
      {.count = 1, .percents = {100}},
      {.count = 5'000, .percents = {0}},
      {.count = 5'000, .percents = {0, 3}},
      {.count = 5'000, .percents = {20, 0, 1}},
      {.count = 2'999, .percents = {100}},
      {.count = 2'001, .block = 4, .percents = {5}},
      {.count = 2'001, .block = 7, .percents = {0, 50}},
      {.count = 90, .block = 100, .percents = {100}},
      {.count = 5'000, .block = 0, .percents = {2}},
      {.count = 5'000, .block = 0, .percents = {60}},
  };
  run_groups(GetParam(), [&](Group& group) {
    for (const Scenario& scenario : scenarios) {
      SCOPED_TRACE(testing::Message() << scenario.count << " in blocks of " << scenario.block
                                      << ", " << scenario.percents[0] << " %");
      expect_exact(scenario, group.world(), reduced(group, scenario));
    }
  });
}

TEST_P(SparseAllReduces, KnowEveryTypeAndOperationThatZerosDoNotChange) {
  run_groups(GetParam(), [&](Group& group) {
    for (unsigned type = 0; type < kDataTypes; ++type) {
      for (const Operation operation :
           {Operation::sum, Operation::bitwise_or, Operation::bitwise_xor}) {
        const Scenario scenario{.count = 700,
                                .block = 2,
                                .percents = {10, 30},
                                .type = static_cast<DataType>(type),
                                .operation = operation};
        if (is_reducible(scenario.type, operation)) {
          expect_exact(scenario, group.world(), reduced(group, scenario));
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Plans, SparseAllReduces,
                         testing::Values(JobPlan{.world = 2}, JobPlan{.world = 5},
                                         JobPlan{.world = 3, .rings = {4, 5, 6}},
                                         JobPlan{.world = 2, .window = 1, .message_bytes = 48},
                                         JobPlan{.world = 3, .loss = 0.02, .seed = 9},
                                         JobPlan{.world = 4, .fallback = Fallback::ring}));

template <typename Element>
SparseTensor tensor_of(std::uint64_t count, const Indices& indices,
                       const std::vector<Element>& values, std::uint64_t block = 1) {
  return {.count = count,
          .block = block,
          .indices = indices,
          .values = reinterpret_cast<const std::uint8_t*>(values.data())};
}

template <typename Element>
std::vector<Element> values_of(const SparseResult& result) {
  std::vector<Element> values(result.values.size() / sizeof(Element));
  std::memcpy(values.data(), result.values.data(), result.values.size());
  return values;
}

TEST(Sparse, IsTheUnionOfElements) {
  run_groups({.world = 3}, [](Group& group) {
    const std::vector<Indices> indices{{1, 1000}, {}, {0, 1000, 6400}};
    const std::vector<std::vector<float>> values{{1.5F, 2}, {}, {4, 8, 16}};
    auto call =
        group.start_sparse(tensor_of(10'000, indices[group.rank()], values[group.rank()]), {});
    call.pending.wait();
    EXPECT_THAT(call.result->result().indices, ElementsAre(0, 1, 1000, 6400));
    EXPECT_THAT(values_of<float>(call.result->result()), ElementsAre(4, 1.5F, 10, 16));
  });
}

TEST(Sparse, MergesIndicesThatComeSeveralTimesAndInAnyOrder) {
  run_groups({.world = 2}, [](Group& group) {
    const Indices indices{70, 3, 70, 3, 70};
    const std::vector<std::int32_t> values{1, 2, 10, 20, 100, 200, 1000, 2000, 10'000, 20'000};
    auto call = group.start_sparse(tensor_of(1'000, indices, values, 2), {.type = DataType::i32});
    call.pending.wait();
    EXPECT_THAT(call.result->result().indices, ElementsAre(3, 70));
    EXPECT_THAT(values_of<std::int32_t>(call.result->result()),
                ElementsAre(2020, 4040, 20'202, 40'404));
  });
}

TEST(Sparse, DividesAndMultipliesAsDenseCallsDo) {
  run_groups({.world = 2}, [](Group& group) {
    const Indices indices{group.rank()};
    const std::vector<std::int32_t> values{-7};
    const SparseTensor tensor = tensor_of(1'000, indices, values);
    auto average = group.start_sparse(tensor, {.type = DataType::i32, .finish = Finish::average});
    Factor factor{};
    factor[0] = static_cast<std::uint8_t>(group.rank() + 2);
    auto scaled = group.start_sparse(tensor, {.type = DataType::i32}, factor);
    scaled.pending.wait();
    EXPECT_THAT(values_of<std::int32_t>(average.result->result()), ElementsAre(-3, -3));
    EXPECT_THAT(values_of<std::int32_t>(scaled.result->result()), ElementsAre(-14, -21));
    EXPECT_EQ(values[0], -7) << "the input was touched";
  });
}

/// Absent elements are +0, and -0 + +0 is +0. NaN comes out as the switch writes it.
TEST(Sparse, KnowsMinusZeroAndNaN) {
  run_groups({.world = 2}, [](Group& group) {
    const float nan = std::bit_cast<float>(0xffc12345U);
    const Indices indices = group.rank() == 0 ? Indices{1, 2, 3} : Indices{1};
    const std::vector<float> values{-0.0F, -0.0F, nan};
    auto call = group.start_sparse(tensor_of(1'000, indices, values), {});
    call.pending.wait();
    EXPECT_THAT(values_of<std::uint32_t>(call.result->result()),
                ElementsAre(0x80000000U, 0, 0x7fc00000U));
  });
}

/// A gibibyte of f32, of which no rank may make an array.
TEST(Sparse, TakesTwoLevelsForLongTensors) {
  run_groups({.world = 3}, [](Group& group) {
    constexpr std::int64_t long_count = std::int64_t{1} << 28;
    const Indices indices{group.rank(), 1'000'000 + 64 * group.rank(), long_count - 1};
    const std::vector<float> values{1, 2, 3};
    auto call = group.start_sparse(tensor_of(long_count, indices, values), {});
    call.pending.wait();
    const SparseResult& result = call.result->result();
    EXPECT_EQ(result.form, SparseForm::two_levels);
    EXPECT_THAT(result.indices,
                ElementsAre(0, 1, 2, 1'000'000, 1'000'064, 1'000'128, long_count - 1));
    EXPECT_THAT(values_of<float>(result), ElementsAre(1, 1, 1, 2, 2, 2, 9));
    EXPECT_LT(result.exchanged_bytes, std::uint64_t{long_count} / 4096 * 9);
  });
}

TEST(Sparse, IsDenseWhenAlmostAllIsThere) {
  run_groups({.world = 2}, [](Group& group) {
    const Scenario full{.count = 4'096, .percents = {100}};
    const SparseResult result = reduced(group, full);
    EXPECT_EQ(result.form, SparseForm::dense);
    EXPECT_LT(result.exchanged_bytes, 4'096U * 4 + 300);
    expect_exact(full, 2, result);
  });
}

TEST(Sparse, ChoosesLargerBlocksForClusters) {
  run_groups({.world = 2}, [](Group& group) {
    constexpr std::int64_t cluster = 1'024;
    Indices indices(cluster);
    for (std::int64_t i = 0; i < cluster; ++i) {
      indices[static_cast<std::size_t>(i)] = (3 + group.rank()) * cluster + i;
    }
    const std::vector<float> values(cluster, 1);
    auto call = group.start_sparse(tensor_of(64 * cluster, indices, values, 0), {});
    call.pending.wait();
    const SparseResult& result = call.result->result();
    EXPECT_EQ(result.block, 1'024U);
    EXPECT_THAT(result.indices, ElementsAre(3, 4));
    EXPECT_EQ(values_of<float>(result), std::vector<float>(2 * cluster, 1));
  });
}

/// Calls behind a sparse one may be known before its union is.
TEST(Sparse, KeepsTheOrderOfCalls) {
  run_groups({.world = 3, .rings = {1, 2}, .window = 2, .loss = 0.01}, [](Group& group) {
    const Scenario sparse{.count = 20'000, .percents = {1}};
    const Scenario blocks{.count = 20'000, .block = 16, .percents = {0, 5}};
    const std::vector<Part> parts{part_of(sparse, group.rank()), part_of(blocks, group.rank())};
    std::vector<std::vector<std::int32_t>> dense(6, std::vector<std::int32_t>(3'000, group.rank()));
    std::vector<Pending> pending;
    std::vector<std::shared_ptr<const SparseOutcome>> results;
    for (std::size_t i = 0; i < dense.size(); ++i) {
      pending.push_back(group.start_all_reduce(dense[i].data(), dense[i].data(), dense[i].size(),
                                               DataType::i32, Operation::sum));
      const Scenario& scenario = i % 2 == 0 ? sparse : blocks;
      auto call = group.start_sparse(scenario.tensor(parts[i % 2]), scenario.call());
      pending.push_back(call.pending);
      results.push_back(call.result);
    }
    for (Pending& call : pending) {
      call.wait();
    }
    for (std::size_t i = 0; i < dense.size(); ++i) {
      EXPECT_THAT(dense[i], testing::Each(3));
      expect_exact(i % 2 == 0 ? sparse : blocks, 3, results[i]->result());
    }
  });
}

TEST(Sparse, RefusesWhatHasNoMeaningAndGoesOn) {
  run_groups({.world = 2}, [](Group& group) {
    const std::vector<float> values(3);
    const auto refusal = [&](const SparseTensor& tensor, Operation operation) -> std::string {
      try {
        group.start_sparse(tensor, {.operation = operation});
      } catch (const std::invalid_argument& error) {
        return error.what();
      }
      return "none";
    };
    const auto sum_of = [&](const SparseTensor& tensor) { return refusal(tensor, Operation::sum); };
    EXPECT_EQ(sum_of(tensor_of(100, {1, 100, 2}, values)),
              "indices[1]: found 100; allowed: 0 .. 99");
    EXPECT_EQ(sum_of(tensor_of(100, {1, 2, -1}, values)), "indices[2]: found -1; allowed: 0 .. 99");
    EXPECT_EQ(sum_of(tensor_of(100, {25}, values, 4)), "indices[0]: found 25; allowed: 0 .. 24");
    EXPECT_THAT(sum_of(tensor_of(0, {0}, values)), HasSubstr("indices[0]: found 0; allowed: none"));
    EXPECT_THAT(sum_of(tensor_of(100, {0}, values, 65'536)),
                HasSubstr("block_elements: found 65536; allowed: 0 .. 65535"));
    constexpr std::uint64_t too_many = (std::uint64_t{1} << 36) + 1;
    EXPECT_EQ(
        sum_of(tensor_of(too_many, {0}, values)),
        "count: found 68719476737 elements, 68719476737 indices; allowed: 68719476736 indices");
    EXPECT_EQ(sum_of(tensor_of(3 * too_many, {0}, values, 3)),
              "count: found 206158430211 elements, 68719476737 indices; allowed: 68719476736 "
              "indices");
    EXPECT_EQ(sum_of(tensor_of(too_many, {}, values, 0)), sum_of(tensor_of(too_many, {}, values)));
    SparseTensor without_values = tensor_of(100, {}, values);
    const Indices one{1};
    without_values.indices = one;
    without_values.values = nullptr;
    EXPECT_THAT(sum_of(without_values), HasSubstr("values: found NULL"));
    for (const Operation operation : {Operation::min, Operation::max, Operation::product}) {
      EXPECT_THAT(refusal(tensor_of(100, {}, values), operation),
                  HasSubstr("of sparse tensors; allowed: sum, average, or, xor"));
    }
    EXPECT_THROW(group.start(values.data(), nullptr, {.kind = CallKind::sparse_all_reduce}),
                 std::invalid_argument);
    const Scenario good{.count = 100, .percents = {3}};
    expect_exact(good, 2, reduced(group, good));
  });
}

/// The result tells what the request tells, also when the request is gone.
TEST(Sparse, ResultTellsWhetherItsCallIsUnderWayOrFailed) {
  std::latch is_told(1);
  run_groups({.world = 2}, [&](Group& group) {
    if (group.rank() == 1) {
      is_told.wait(); // without the call
      return;
    }
    auto call = group.start_sparse({.count = 10}, {});
    EXPECT_EQ(call.result->find(), nullptr);
    group.abort();
    const Ending ending = ending_of([&] { call.pending.wait(); });
    call.pending = Pending();
    const Ending told = ending_of([&] { call.result->find(); });
    EXPECT_EQ(told.code, ErrorCode::aborted);
    EXPECT_EQ(told.text, ending.text);
    EXPECT_EQ(told.rank, 0);
    is_told.count_down();
  });
}

struct Disagreement {
  Scenario rank_1;
  const char* text;
};

class SparseDisagreements : public testing::TestWithParam<Fallback> {};

TEST_P(SparseDisagreements, NameWhoCalledWhat) {
  const Scenario others{.count = 400, .block = 4, .percents = {5}};
  const std::string rank_0 = "; rank 0 calls sparse-all-reduce of 400 f32, sum, in blocks of 4";
  const std::vector<Disagreement> rows{
      {{.count = 400, .block = 2, .percents = {5}},
       "rank 1 calls sparse-all-reduce of 400 f32, sum, in blocks of 2"},
      {{.count = 400, .block = 0, .percents = {5}},
       "rank 1 calls sparse-all-reduce of 400 f32, sum, in blocks of any size"},
      {{.count = 401, .block = 4, .percents = {5}},
       "rank 1 calls sparse-all-reduce of 401 f32, sum, in blocks of 4"},
      {{.count = 400, .block = 4, .percents = {5}, .type = DataType::i32},
       "rank 1 calls sparse-all-reduce of 400 i32, sum, in blocks of 4"}};
  for (const Disagreement& row : rows) {
    run_groups({.world = 3, .fallback = GetParam()}, [&](Group& group) {
      const Ending ending =
          ending_of([&] { reduced(group, group.rank() == 1 ? row.rank_1 : others); });
      EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
      EXPECT_THAT(ending.text, HasSubstr(row.text));
      if (GetParam() == Fallback::none) {
        EXPECT_THAT(ending.text, HasSubstr(row.text + rank_0));
      }
    });
  }
}

TEST_P(SparseDisagreements, NameADenseCall) {
  run_groups({.world = 3, .fallback = GetParam()}, [&](Group& group) {
    std::vector<float> dense(400);
    const Ending ending = ending_of([&] {
      if (group.rank() == 1) {
        group.all_reduce(dense.data(), dense.data(), dense.size(), DataType::f32, Operation::sum);
      } else {
        reduced(group, {.count = 400, .percents = {5}});
      }
    });
    EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
    EXPECT_THAT(ending.text, HasSubstr("rank 1 calls all-reduce of 400 f32, sum"));
    EXPECT_THAT(ending.text, HasSubstr("sparse-all-reduce of 400 f32, sum, in blocks of 1"));
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, SparseDisagreements,
                         testing::Values(Fallback::none, Fallback::ring));

} // namespace
} // namespace weir::host::sparse_test
