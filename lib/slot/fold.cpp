// SPDX-License-Identifier: BSD-3-Clause
#include "slot/fold.hpp"

#include <algorithm>
#include <bit>

namespace weir::slot {
namespace {

constexpr std::size_t kAllRanksBytes = 16384; // half of a small first-level cache
// For shorter blocks, calls cost more than cache lines.
constexpr std::size_t kLeastBlock = 128;

} // namespace

void fold_to_all(const Fold& fold, std::byte* out, std::span<std::byte*> payloads,
                 std::size_t bytes) {
  const std::size_t block = std::max(kLeastBlock, std::bit_floor(kAllRanksBytes / payloads.size()));
  const std::size_t sources = fold.count == 0 ? payloads.size() : fold.count;
  for (std::size_t at = 0; at < bytes; at += block) {
    const std::size_t length = std::min(block, bytes - at);
    fold.kernel(out + at, payloads.data() + fold.first, static_cast<unsigned>(sources), length);
    fold.spread(payloads.data(), static_cast<unsigned>(payloads.size()), out + at, length);
    for (std::byte*& payload : payloads) {
      payload += length;
    }
  }
}

} // namespace weir::slot
