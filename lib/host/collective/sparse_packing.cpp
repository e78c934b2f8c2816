// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/sparse_packing.hpp"

#include "host/collective/sparse_bitmap.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace weir::host {

std::uint64_t BlockLayout::bytes_of(std::span<const std::int64_t> blocks) const {
  const std::uint64_t whole = blocks.size() * block_bytes();
  const bool has_last = !blocks.empty() && std::cmp_equal(blocks.back(), this->blocks() - 1);
  return has_last ? whole - (this->blocks() * block_bytes() - tensor_bytes) : whole;
}

std::vector<std::uint8_t> pack(const SparseInput& input, const BlockLayout& layout,
                               std::span<const std::int64_t> blocks) {
  std::vector<std::uint8_t> packed(blocks.size() * layout.block_bytes());
  PlaceFinder finder(blocks);
  for (std::size_t position = 0; position < input.indices().size(); ++position) {
    const std::int64_t unit = input.indices()[position];
    const std::int64_t block = unit >> layout.shift;
    const auto unit_in_block = static_cast<std::size_t>(unit - (block << layout.shift));
    const std::size_t to =
        finder.find(block) * layout.block_bytes() + unit_in_block * layout.unit_bytes;
    const std::uint64_t from_here =
        layout.tensor_bytes - static_cast<std::uint64_t>(unit) * layout.unit_bytes;
    std::memcpy(packed.data() + to, input.unit_at(position),
                std::min<std::uint64_t>(layout.unit_bytes, from_here));
  }
  return packed;
}

std::vector<std::int64_t> all_blocks(const BlockLayout& layout) {
  std::vector<std::int64_t> blocks(layout.blocks());
  std::iota(blocks.begin(), blocks.end(), std::int64_t{0});
  return blocks;
}

} // namespace weir::host
