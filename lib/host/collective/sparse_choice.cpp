// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/sparse_choice.hpp"

#include "host/collective/sparse_bitmap.hpp"

#include <algorithm>
#include <bit>

namespace weir::host {
namespace {

constexpr unsigned kMostShift = kGranuleSizes - 1 - kWordShift;

// A second level takes one more round trip, in whose time a link carries about as many bytes.
constexpr std::uint64_t kExchangeBytes = 16'384;

/// Of a union that the ranks do not know yet: how many granules, or what they cost each rank in
/// each direction, in bytes.
struct Guess {
  std::uint64_t least = 0;
  std::uint64_t likely = 0; // if the ranks' granules have nothing to do with one another
};

constexpr unsigned kFractionBits = 32;

/// 2^32 part / whole, rounded down; part <= whole. All ranks must get the same, so no
/// floating-point.
std::uint64_t fraction_of(std::uint64_t part, std::uint64_t whole) {
  const auto excess = static_cast<unsigned>(
      std::max(0, static_cast<int>(std::bit_width(whole)) - static_cast<int>(kFractionBits)));
  return ((part >> excess) << kFractionBits) / std::max<std::uint64_t>(whole >> excess, 1);
}

std::uint64_t share_of(std::uint64_t whole, std::uint64_t fraction) {
  const std::uint64_t high = whole >> kFractionBits;
  const std::uint64_t low = whole & UINT32_MAX;
  return high * fraction + (low * fraction >> kFractionBits);
}

std::uint64_t granules_of(const SparseShape& shape, unsigned size) {
  return ((shape.units - 1) >> size) + 1;
}

/// Granules of the union. If each rank has a share d of all, H ranks have 1 - (1 - d)^H.
Guess guess_union(const SparseShape& shape, const GranuleCounts& sums, unsigned size) {
  const std::uint64_t all = granules_of(shape, size);
  const std::uint64_t mean = std::min(all, (sums[size] + shape.world - 1) / shape.world);
  const std::uint64_t one = std::uint64_t{1} << kFractionBits;
  const std::uint64_t without = one - std::min(one - 1, fraction_of(mean, all));
  std::uint64_t nobody = one;
  for (std::uint16_t rank = 0; rank < shape.world; ++rank) {
    nobody = nobody * (without >> 1) >> (kFractionBits - 1);
  }
  const std::uint64_t likely = all - share_of(all, nobody);
  return {mean, std::clamp(likely, mean, std::min(all, std::max(mean, sums[size])))};
}

/// Whole blocks of a tensor are no more than the tensor.
std::uint64_t bytes_of_blocks(const SparseShape& shape, std::uint64_t blocks, unsigned shift) {
  return std::min(blocks << shift, shape.units) * shape.unit_bytes;
}

Guess cost_of(const SparseShape& shape, const GranuleCounts& sums, const SparseChoice& choice) {
  const Guess blocks = guess_union(shape, sums, choice.shift);
  const Guess cost{bytes_of_blocks(shape, blocks.least, choice.shift),
                   bytes_of_blocks(shape, blocks.likely, choice.shift)};
  const std::uint64_t words = words_of(granules_of(shape, choice.shift));
  if (choice.form == SparseForm::one_level) {
    return {cost.least + words * sizeof(std::uint64_t),
            cost.likely + words * sizeof(std::uint64_t)};
  }
  const Guess touched = guess_union(shape, sums, choice.shift + kWordShift);
  const std::uint64_t bitmap = words_of(words) * sizeof(std::uint64_t) + kExchangeBytes;
  return {cost.least + bitmap + touched.least * sizeof(std::uint64_t),
          cost.likely + bitmap + touched.likely * sizeof(std::uint64_t)};
}

} // namespace

std::string_view name_of(SparseForm form) {
  switch (form) {
  case SparseForm::one_level:
    return "one-level";
  case SparseForm::two_levels:
    return "two-levels";
  case SparseForm::dense:
    break;
  }
  return "dense";
}

GranuleCounts count_granules(std::span<const std::int64_t> units) {
  GranuleCounts counts{};
  if (units.empty()) {
    return counts;
  }
  // Two neighbours are in different granules of every size below the highest bit that differs.
  for (std::size_t i = 1; i < units.size(); ++i) {
    const auto sizes =
        static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(units[i - 1] ^ units[i])));
    ++counts[std::min(sizes, kGranuleSizes) - 1];
  }
  for (unsigned size = kGranuleSizes - 1; size != 0; --size) {
    counts[size - 1] += counts[size];
  }
  for (std::uint64_t& count : counts) {
    ++count; // the first unit's
  }
  return counts;
}

SparseChoice choose(const SparseShape& shape, const GranuleCounts& sums) {
  SparseChoice best{.form = SparseForm::dense};
  std::uint64_t best_cost = UINT64_MAX;
  bool may_save = false;
  const unsigned most_shift = shape.block_size == BlockSize::is_free ? kMostShift : 0;
  for (unsigned shift = 0; shift <= most_shift && shape.units != 0; ++shift) {
    for (const SparseForm form : {SparseForm::one_level, SparseForm::two_levels}) {
      const SparseChoice choice{form, shift};
      const Guess cost = cost_of(shape, sums, choice);
      may_save |= cost.least < shape.units * shape.unit_bytes;
      if (cost.likely < best_cost) {
        best = choice;
        best_cost = cost.likely;
      }
    }
  }
  return may_save ? best : SparseChoice{.form = SparseForm::dense};
}

} // namespace weir::host
