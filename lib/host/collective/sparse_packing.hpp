// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/sparse_input.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::host {

/// Blocks of 2^shift units of a tensor.
struct BlockLayout {
  std::uint64_t tensor_bytes = 0;
  std::size_t unit_bytes = 0;
  unsigned shift = 0;

  std::size_t block_bytes() const { return unit_bytes << shift; }

  /// Blocks of the tensor, of which the last may be shorter.
  std::uint64_t blocks() const { return units_of(tensor_bytes, block_bytes()); }

  /// Bytes of some blocks without what lies behind the tensor's end. Places ascend.
  std::uint64_t bytes_of(std::span<const std::int64_t> blocks) const;
};

/// The blocks one after the other, each as long as any: a rank's units at their places, 0
/// elsewhere. Throws Error if a unit is in none of the blocks.
std::vector<std::uint8_t> pack(const SparseInput& input, const BlockLayout& layout,
                               std::span<const std::int64_t> blocks);

/// Every block of the tensor.
std::vector<std::int64_t> all_blocks(const BlockLayout& layout);

} // namespace weir::host
