// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::host {

/// A granule of size g is 2^g units of a tensor that lie next to each other.
inline constexpr unsigned kGranuleSizes = 24;

/// For each size, granules with a unit that is there.
using GranuleCounts = std::array<std::uint64_t, kGranuleSizes>;

/// Units ascend, each once.
GranuleCounts count_granules(std::span<const std::int64_t> units);

/// How the ranks tell one another what they have.
enum class SparseForm : std::uint8_t {
  one_level,  // a bitmap of the blocks, then the union's blocks
  two_levels, // a bitmap of that bitmap's words, then those words, then the blocks
  dense       // nothing: all blocks travel
};

/// "one-level" and so on.
std::string_view name_of(SparseForm form);

struct SparseChoice {
  SparseForm form = SparseForm::one_level;
  unsigned shift = 0; // a block is 2^shift units

  bool operator==(const SparseChoice&) const = default;
};

enum class BlockSize : std::uint8_t { is_unit, is_free };

/// What every rank knows of the call.
struct SparseShape {
  std::uint64_t units = 0;
  std::size_t unit_bytes = 4;
  std::uint16_t world = 2;
  BlockSize block_size = BlockSize::is_unit;
};

/// The choice that all ranks make alike, from the sums of their counts. Dense is chosen if the
/// bitmap costs more bytes than it can save: a union has at least the mean of the ranks' blocks. So
/// sparse never costs more than dense and its bitmaps. Among the others, the cheapest is chosen for
/// ranks whose blocks have nothing to do with one another.
SparseChoice choose(const SparseShape& shape, const GranuleCounts& sums);

} // namespace weir::host
