// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Arithmetic modulo the CRC-32 polynomial on bit-reflected residues: the highest bit is the
/// coefficient of x^0. It is slow: for constants, and where no faster code exists.

#include <cstdint>

namespace weir::wire {

inline constexpr std::uint32_t kPolynomial = 0xedb88320;
inline constexpr std::uint32_t kOne = 0x80000000; // x^0
inline constexpr std::uint32_t kX = 0x40000000;   // x^1

constexpr std::uint32_t multiply_bitwise(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) {
      product ^= b;
    }
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

/// x^n.
consteval std::uint32_t power_of_x(unsigned n) {
  std::uint32_t power = kOne;
  std::uint32_t square = kX;
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) {
      power = multiply_bitwise(power, square);
    }
    square = multiply_bitwise(square, square);
  }
  return power;
}

} // namespace weir::wire
