// SPDX-License-Identifier: BSD-3-Clause

/// What a sparse all-reduce is made of, without a network: bitmaps, counts, the choice, merged
/// input. sparse_test.cpp has whole jobs.

#include "host/base/error.hpp"
#include "host/collective/sparse_all_reduce.hpp"
#include "host/collective/sparse_bitmap.hpp"
#include "host/collective/sparse_choice.hpp"
#include "host/collective/sparse_packing.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace weir::host::sparse_parts_test {
namespace {

using testing::ElementsAre;
using Indices = std::vector<std::int64_t>;
using Words = std::vector<std::uint64_t>;

template <typename Element>
SparseTensor tensor_of(std::uint64_t count, const Indices& indices,
                       const std::vector<Element>& values) {
  return {.count = count,
          .indices = indices,
          .values = reinterpret_cast<const std::uint8_t*>(values.data())};
}

TEST(Bitmap, HasABitForEachPlace) {
  const Indices places{0, 3, 63, 64, 200};
  const Words words = mark(places, 0, 201);
  EXPECT_THAT(words, ElementsAre(0x8000000000000009U, 1U, 0U, std::uint64_t{1} << (200 - 192)));
  EXPECT_EQ(marked(words), places);
  EXPECT_THAT(mark(places, 6, 4), ElementsAre(0b1011U));
  EXPECT_THAT(mark({}, 0, 64), ElementsAre(0U));
  EXPECT_EQ(mark({}, 0, 0), Words());
}

TEST(Bitmap, HasTheWordsThatAreAskedFor) {
  const Indices places{64, 65, 300};
  const Indices words{1, 2, 4};
  const Words found = mark_words(places, 0, words);
  EXPECT_THAT(found, ElementsAre(3U, 0U, std::uint64_t{1} << (300 - 256)));
  EXPECT_EQ(marked_in(found, words), places);
}

/// What the network brings is not to be trusted with memory.
TEST(Bitmap, SaysThatAUnionLacksOurBlocks) {
  EXPECT_THROW(mark_words(Indices{64, 300}, 0, Indices{1}), Error);
  EXPECT_THROW(mark_words(Indices{64}, 0, Indices{0, 2}), Error);
}

TEST(Packing, RefusesAUnionThatLacksOurBlocks) {
  const Indices indices{1, 50};
  const std::vector<float> values(2);
  const SparseInput input(tensor_of(100, indices, values), DataType::f32, Operation::sum,
                          std::nullopt);
  const BlockLayout layout{.tensor_bytes = 400, .unit_bytes = 4};
  EXPECT_THROW(pack(input, layout, Indices{1, 49}), Error);
  EXPECT_EQ(pack(input, layout, Indices{0, 1, 50}).size(), 12U);
}

TEST(Packing, CutsTheLastBlockAtTheTensorsEnd) {
  const BlockLayout layout{.tensor_bytes = 4 * 10, .unit_bytes = 4 * 3, .shift = 1};
  EXPECT_EQ(layout.blocks(), 2U);
  EXPECT_EQ(layout.bytes_of(Indices{0}), 4U * 6);
  EXPECT_EQ(layout.bytes_of(Indices{1}), 4U * 4);
  EXPECT_EQ(layout.bytes_of(Indices{0, 1}), 4U * 10);
  EXPECT_EQ(layout.bytes_of({}), 0U);
}

float float_at(const SparseInput& input, std::size_t position) {
  float value = 0;
  std::memcpy(&value, input.unit_at(position), sizeof(value));
  return value;
}

/// So many that no sort keeps their order by chance; and every sum is rounded.
TEST(Input, FoldsEqualIndicesInTheirOrder) {
  Indices indices;
  std::vector<float> values;
  std::vector<float> sums(3);
  for (int i = 0; i < 300; ++i) {
    indices.push_back(i % 3 * 5);
    values.push_back(i % 2 == 0 ? 1e8F / static_cast<float>(i + 1) : -3.3F * static_cast<float>(i));
    float& sum = sums[static_cast<std::size_t>(i % 3)];
    sum = i < 3 ? values.back() : sum + values.back();
  }
  const SparseInput input(tensor_of(100, indices, values), DataType::f32, Operation::sum,
                          std::nullopt);
  EXPECT_THAT(input.indices(), ElementsAre(0, 5, 10));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(float_at(input, i), sums[i]);
  }
}

TEST(Input, FoldsNeighboursThatAreEqual) {
  const Indices indices{3, 3, 70};
  const std::vector<float> values{1, 2, 4};
  const SparseInput input(tensor_of(100, indices, values), DataType::f32, Operation::sum,
                          std::nullopt);
  EXPECT_THAT(input.indices(), ElementsAre(3, 70));
  EXPECT_EQ(float_at(input, 0), 3);
}

TEST(Input, StaysWhereItLiesIfItAscends) {
  const Indices indices{3, 4, 70};
  const std::vector<float> values(3);
  const SparseInput input(tensor_of(100, indices, values), DataType::f32, Operation::sum,
                          std::nullopt);
  EXPECT_EQ(input.indices().data(), indices.data());
  EXPECT_EQ(input.unit_at(0), reinterpret_cast<const std::uint8_t*>(values.data()));
}

/// Bitmaps of 400 and 401 elements are equally long, so nothing else would stop them.
TEST(Exchanges, EndWithTheFirstIfTheTensorsDiffer) {
  const Indices indices{7};
  const std::vector<float> values{1};
  std::vector<std::unique_ptr<SparseAllReduce>> ranks;
  for (const std::uint64_t count : {400, 401}) {
    const Call call{.kind = CallKind::sparse_all_reduce, .count = count, .block = 1};
    ranks.push_back(std::make_unique<SparseAllReduce>(
        call, std::uint16_t{2}, tensor_of(count, indices, values), std::nullopt));
  }
  const Exchange first = ranks[0]->current();
  const Exchange second = ranks[1]->current();
  ASSERT_EQ(first.call, second.call);
  std::vector<std::uint64_t> sums(first.call.count);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    std::uint64_t other = 0;
    std::memcpy(&sums[i], first.buffers.in + i * 8, 8);
    std::memcpy(&other, second.buffers.in + i * 8, 8);
    sums[i] += other;
  }
  for (const auto& rank : ranks) {
    std::memcpy(rank->current().buffers.out, sums.data(), sums.size() * 8);
    EXPECT_EQ(rank->advance(), ExchangeSeries::Step::differs);
    EXPECT_EQ(rank->advance(), ExchangeSeries::Step::differs) << "asked again";
  }
}

TEST(Granules, AreCountedAsByASet) {
  std::mt19937_64 random(5);
  for (const std::uint64_t range : {1, 10, 1'000, 1'000'000'000}) {
    std::set<std::int64_t> units;
    for (int i = 0; i < 300; ++i) {
      units.insert(static_cast<std::int64_t>(random() % range));
    }
    const GranuleCounts counts = count_granules(Indices(units.begin(), units.end()));
    for (unsigned size = 0; size < kGranuleSizes; ++size) {
      std::set<std::int64_t> granules;
      for (const std::int64_t unit : units) {
        granules.insert(unit >> size);
      }
      EXPECT_EQ(counts[size], granules.size()) << "size " << size << " of " << range;
    }
  }
  EXPECT_THAT(count_granules({}), testing::Each(0));
}

/// 4096 elements of f32 in 64 words: 512 bytes of bitmap, and 4 for each element, against 16384.
/// Dense is cheaper from a mean of 3968 elements on.
TEST(Choice, IsDenseOnceTheBitmapCostsWhatItMaySave) {
  const SparseShape shape{.units = 4096, .unit_bytes = 4, .world = 2};
  EXPECT_EQ(choose(shape, {2 * 3967}).form, SparseForm::one_level);
  EXPECT_EQ(choose(shape, {2 * 3967 + 1}).form, SparseForm::dense) << "a mean is rounded up";
  EXPECT_EQ(choose(shape, {2 * 3968}).form, SparseForm::dense);
  EXPECT_EQ(choose(shape, {2 * 4096}).form, SparseForm::dense);
  EXPECT_EQ(choose(shape, {}).form, SparseForm::one_level);
  EXPECT_EQ(choose({.units = 0}, {}).form, SparseForm::dense);
}

/// A bitmap of 2^28 elements has 2^25 bytes; with two levels 2^19, and 8 for each word touched.
TEST(Choice, HasTwoLevelsWhileFewWordsAreTouched) {
  const SparseShape shape{.units = 1U << 28, .unit_bytes = 4, .world = 2};
  const auto form_of = [&](std::uint64_t elements) {
    GranuleCounts sums{}; // no two of a rank in one granule
    sums.fill(2 * elements);
    return choose(shape, sums).form;
  };
  EXPECT_EQ(form_of(0), SparseForm::two_levels);
  EXPECT_EQ(form_of(1'000'000), SparseForm::two_levels);
  EXPECT_EQ(form_of(4'000'000), SparseForm::one_level);
}

/// Runs of 16 elements, one in a hundred: smaller blocks need more bitmap, larger ones carry zeros.
TEST(Choice, HasTheBlocksOfTheRuns) {
  const SparseShape shape{
      .units = 1U << 22, .unit_bytes = 4, .world = 4, .block_size = BlockSize::is_free};
  Indices units;
  for (std::int64_t run = 0; run < (1 << 22); run += 1'600) {
    for (std::int64_t i = 0; i < 16; ++i) {
      units.push_back(run + i); // 1600 is a multiple of 16
    }
  }
  GranuleCounts sums = count_granules(units);
  for (std::uint64_t& sum : sums) {
    sum *= 4;
  }
  EXPECT_EQ(choose(shape, sums).shift, 4U);
  EXPECT_EQ(choose({.units = 1U << 22, .unit_bytes = 4, .world = 4}, sums).shift, 0U)
      << "the caller's blocks";
}

} // namespace
} // namespace weir::host::sparse_parts_test
