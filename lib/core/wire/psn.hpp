// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Packet sequence numbers: 24-bit serial arithmetic (IBTA §9.7.1). All arguments and results are
/// below 2^24. Two numbers have an order only while they are less than 2^23 apart.

#include <cstdint>

namespace weir::wire {

inline constexpr std::uint32_t kPsnMask = 0xffffff;
inline constexpr std::uint32_t kPsnHalf = 0x800000;

/// `packets` may be negative.
constexpr std::uint32_t psn_add(std::uint32_t psn, std::int64_t packets) {
  return static_cast<std::uint32_t>(psn + static_cast<std::uint64_t>(packets)) & kPsnMask;
}

/// Packets from `from` to `to`: -2^23 … 2^23-1; negative when `to` is before `from`.
constexpr std::int32_t psn_distance(std::uint32_t from, std::uint32_t to) {
  const std::uint32_t ahead = (to - from) & kPsnMask;
  return static_cast<std::int32_t>(ahead ^ kPsnHalf) - static_cast<std::int32_t>(kPsnHalf);
}

constexpr bool psn_before(std::uint32_t earlier, std::uint32_t later) {
  return psn_distance(earlier, later) > 0;
}

} // namespace weir::wire
