// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The CRC-32 by folding 512 bits at a time, compiled for VPCLMULQDQ in a file of its own. Only
/// crc32.cpp knows it.

#include <cstddef>
#include <cstdint>

namespace weir::wire {

/// Bytes that may be read as ones in front of what a CRC covers: enough for an IPv6 header or GRH,
/// UDP and BTH.
inline constexpr std::size_t kMaxOnes = 64;

/// Bytes that one step of the fold takes in.
inline constexpr std::size_t kFoldBytes = 256;

/// Which of a CRC's first bytes are read as `byte | ones`, with zeros before and after, so that it
/// can be laid over the first step wherever the bytes begin there.
struct Ones {
  alignas(64) std::uint8_t padded[2 * kFoldBytes] = {}; // the first byte's at kFoldBytes
  std::size_t bytes = 0;                                // at most kMaxOnes; after these all is zero
};

/// Bytes of the first step, which is filled with zeros in front when it is not full: a CRC that
/// starts from zero does not see them.
constexpr std::size_t first_step_bytes(std::size_t count) {
  return (count - 1) % kFoldBytes + 1;
}

#if defined(__x86_64__)
/// The CRC register after `count` bytes, `start` being that before them. `count` is a multiple of 4
/// and not 0; first_step_bytes(count) >= ones.bytes.
std::uint32_t fold_crc32_vpclmul(std::uint32_t start, const std::uint8_t* bytes, std::size_t count,
                                 const Ones& ones);
#endif

} // namespace weir::wire
