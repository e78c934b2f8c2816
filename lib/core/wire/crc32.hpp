// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// CRC-32 with polynomial 0x04C11DB7, reflected; initial value and final xor are all ones. The ICRC
/// (docs/protocol.md §6) and gzip use it. Values here are finished CRCs, so Crc32Shift::combine can
/// join them.

#include "wire/crc32_fold.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::wire {

/// The CRC of what `crc` covers followed by `bytes`. Start with 0. Uses our own code where the CPU
/// has VPCLMULQDQ, else ISA-L.
std::uint32_t crc32(std::uint32_t crc, std::span<const std::uint8_t> bytes);

/// The same, but reads the first bytes as `byte | ones`.
std::uint32_t crc32_with_ones(std::uint32_t crc, std::span<const std::uint8_t> bytes,
                              const Ones& ones);

/// The finished CRC that stands for a register of zero. Zero bytes do not change it.
inline constexpr std::uint32_t kCrcOfZeroRegister = 0xffffffff;

/// One bit at a time. Tests compare the fast versions with it.
std::uint32_t crc32_reference(std::uint32_t crc, std::span<const std::uint8_t> bytes);

/// What appending `bytes` bytes does to a CRC: a factor x^(8·bytes) modulo the polynomial. Lengths
/// of payloads come from a table; others take a logarithmic number of multiplications.
class Crc32Shift {
 public:
  explicit Crc32Shift(std::size_t bytes);

  /// The CRC of A followed by B, where B has this shift's length.
  std::uint32_t combine(std::uint32_t crc_of_a, std::uint32_t crc_of_b) const;

 private:
  std::uint32_t factor_;
};

} // namespace weir::wire
