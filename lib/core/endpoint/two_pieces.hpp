// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::endpoint {

/// Bytes that lie in two places, and count as one after the other.
template <typename Byte>
struct TwoPieces {
  std::span<Byte> first;
  std::span<Byte> second;

  std::size_t size() const { return first.size() + second.size(); }

  /// `bytes` bytes from `offset` on. The caller has checked the range.
  TwoPieces slice(std::size_t offset, std::size_t bytes) const {
    assert(offset + bytes <= size());
    if (offset >= first.size()) {
      return {second.subspan(offset - first.size(), bytes), {}};
    }
    const std::size_t from_first = std::min(bytes, first.size() - offset);
    return {first.subspan(offset, from_first), second.first(bytes - from_first)};
  }
};

/// What is sent.
using Gather = TwoPieces<const std::uint8_t>;

/// Where it is stored.
using Scatter = TwoPieces<std::uint8_t>;

} // namespace weir::endpoint
