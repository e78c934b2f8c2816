// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::wire {

/// The one's complement sum of an IPv4 header's words (RFC 1071), before it is folded to 16 bits.
inline std::uint32_t ipv4_sum(const std::uint8_t* header, std::size_t bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes; i += 2) {
    sum += std::uint32_t{header[i]} << 8 | header[i + 1];
  }
  return sum;
}

/// The checksum field for a header whose words, with a checksum of 0, have this sum.
constexpr std::uint16_t ipv4_checksum(std::uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

} // namespace weir::wire
