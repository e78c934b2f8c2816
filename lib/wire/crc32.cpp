// SPDX-License-Identifier: BSD-3-Clause
#include "wire/crc32.hpp"

#include <isa-l/crc.h>

#include <immintrin.h>

namespace weir::wire {
namespace {

// Bit-reflected: the highest bit is the coefficient of x^0.
constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::uint32_t kOne = 0x80000000;
constexpr std::uint32_t kX8 = 0x00800000;

using Multiply = std::uint32_t (*)(std::uint32_t, std::uint32_t);

std::uint32_t multiply_bitwise(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) {
      product ^= b;
    }
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

/// Carry-less product, then Barrett's reduction with the reflected constants of Gopal et al., "Fast
/// CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
__attribute__((target("pclmul,sse4.1"))) std::uint32_t multiply_clmul(std::uint32_t a,
                                                                      std::uint32_t b) {
  const __m128i constants = _mm_set_epi64x(0x1f7011641LL, 0x1db710641LL); // quotient, polynomial
  const __m128i low_word = _mm_set_epi32(0, 0, 0, -1);
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(a)),
                                         _mm_cvtsi32_si128(static_cast<int>(b)), 0);
  product = _mm_slli_epi64(product, 1); // reflected operands leave the product one bit short
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(product, low_word), constants, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_word), constants, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(product, quotient), 1));
}

const Multiply multiply = __builtin_cpu_supports("pclmul") != 0 ? multiply_clmul : multiply_bitwise;

} // namespace

std::uint32_t crc32(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  return crc32_gzip_refl(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32_reference(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  crc = ~crc;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    }
  }
  return ~crc;
}

Crc32Shift::Crc32Shift(std::size_t bytes) : factor_(kOne) {
  std::uint32_t power = kX8;
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) {
      factor_ = multiply(factor_, power);
    }
    power = multiply(power, power);
  }
}

std::uint32_t Crc32Shift::combine(std::uint32_t crc_of_a, std::uint32_t crc_of_b) const {
  return multiply(crc_of_a, factor_) ^ crc_of_b;
}

} // namespace weir::wire
