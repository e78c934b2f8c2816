// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// CRC-32 with polynomial 0x04C11DB7, reflected, initial value and final xor all ones: the ICRC's
/// (docs/protocol.md §6) and gzip's. Values here are finished CRCs, so pieces join with
/// crc32_combine.

#include "wire/crc32_fold.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::wire {

/// The CRC of (whatever `crc` covers) followed by `bytes`; start with 0. By our own fold where the
/// CPU has VPCLMULQDQ, else by ISA-L's.
std::uint32_t crc32(std::uint32_t crc, std::span<const std::uint8_t> bytes);

/// The same with the first bytes read as `byte | ones`.
std::uint32_t crc32_with_ones(std::uint32_t crc, std::span<const std::uint8_t> bytes,
                              const Ones& ones);

/// The finished CRC that stands for a register of zero: bytes of zero leave it as it is.
inline constexpr std::uint32_t kCrcOfZeroRegister = 0xffffffff;

/// One bit at a time: what the other is held against.
std::uint32_t crc32_reference(std::uint32_t crc, std::span<const std::uint8_t> bytes);

/// What appending `bytes` bytes does to a CRC, as a factor modulo the polynomial: x^(8·bytes).
/// Taken from a table for the lengths that payloads have, else a logarithm of multiplications.
class Crc32Shift {
 public:
  explicit Crc32Shift(std::size_t bytes);

  /// The CRC of A followed by B, |B| being this shift's length.
  std::uint32_t combine(std::uint32_t crc_of_a, std::uint32_t crc_of_b) const;

 private:
  std::uint32_t factor_;
};

} // namespace weir::wire
