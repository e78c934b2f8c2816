// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// CRC-32 of 512 bits at a time, compiled for VPCLMULQDQ in a file of its own. Only crc32.cpp
/// includes this.

#include <cstddef>
#include <cstdint>

namespace weir::wire {

/// Most leading bytes that a CRC can read as ones. Enough for an IPv6 header or GRH, UDP and BTH.
inline constexpr std::size_t kMaxOnes = 64;

/// Bytes that one step takes in.
inline constexpr std::size_t kFoldBytes = 256;

/// Which of a CRC's first bytes are read as `byte | ones`. Zeros before and after them let a caller
/// align this mask with the first step, wherever in it the bytes begin.
struct Ones {
  alignas(64) std::uint8_t padded[2 * kFoldBytes] = {}; // the first byte's mask is at kFoldBytes
  std::size_t bytes = 0; // at most kMaxOnes; all later masks are zero
};

/// Bytes of the first step. A step that is not full is filled with zeros in front: a CRC that
/// starts from zero does not change with them.
constexpr std::size_t first_step_bytes(std::size_t count) {
  return (count - 1) % kFoldBytes + 1;
}

#if defined(__x86_64__)
/// Returns the CRC register after `count` bytes; `start` is the register before them. `count` is a
/// multiple of 4 and not 0; first_step_bytes(count) >= ones.bytes.
std::uint32_t fold_crc32_vpclmul(std::uint32_t start, const std::uint8_t* bytes, std::size_t count,
                                 const Ones& ones);
#endif

} // namespace weir::wire
