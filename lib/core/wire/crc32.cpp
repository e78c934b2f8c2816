// SPDX-License-Identifier: BSD-3-Clause
#include "wire/crc32.hpp"

#include "wire/crc32_polynomial.hpp"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <functional>
#include <immintrin.h>

namespace weir::wire {
namespace {

using Multiply = std::uint32_t (*)(std::uint32_t, std::uint32_t);

/// Carry-less product, then Barrett reduction. The reflected constants are from Gopal et al., "Fast
/// CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
__attribute__((target("pclmul,sse4.1"))) std::uint32_t multiply_clmul(std::uint32_t a,
                                                                      std::uint32_t b) {
  const __m128i constants = _mm_set_epi64x(0x1f7011641LL, 0x1db710641LL); // quotient, polynomial
  const __m128i low_word = _mm_set_epi32(0, 0, 0, -1);
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(a)),
                                         _mm_cvtsi32_si128(static_cast<int>(b)), 0);
  product = _mm_slli_epi64(product, 1); // a product of reflected operands is one bit short
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(product, low_word), constants, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_word), constants, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(product, quotient), 1));
}

const Multiply multiply = __builtin_cpu_supports("pclmul") != 0 ? multiply_clmul : multiply_bitwise;

const bool has_fold =
    __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;

bool can_fold(std::size_t count, const Ones& ones) {
  return has_fold && count % 4 == 0 && count != 0 && first_step_bytes(count) >= ones.bytes;
}

constexpr Ones kNoOnes;

constexpr std::uint32_t kX8 = power_of_x(8);
constexpr std::size_t kTabledShifts = 4096 + 4; // the largest path MTU and a pad

std::array<std::uint32_t, kTabledShifts> shift_factors() {
  std::array<std::uint32_t, kTabledShifts> factors{kOne};
  for (std::size_t bytes = 1; bytes < kTabledShifts; ++bytes) {
    factors[bytes] = multiply(factors[bytes - 1], kX8);
  }
  return factors;
}

const std::array<std::uint32_t, kTabledShifts> tabled_factors = shift_factors();

std::uint32_t factor_of(std::size_t bytes) {
  if (bytes < kTabledShifts) {
    return tabled_factors[bytes];
  }
  std::uint32_t factor = kOne;
  for (std::uint32_t power = kX8; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) {
      factor = multiply(factor, power);
    }
    power = multiply(power, power);
  }
  return factor;
}

} // namespace

std::uint32_t crc32(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  if (can_fold(bytes.size(), kNoOnes)) {
    return ~fold_crc32_vpclmul(~crc, bytes.data(), bytes.size(), kNoOnes);
  }
  return crc32_gzip_refl(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32_with_ones(std::uint32_t crc, std::span<const std::uint8_t> bytes,
                              const Ones& ones) {
  if (can_fold(bytes.size(), ones)) {
    return ~fold_crc32_vpclmul(~crc, bytes.data(), bytes.size(), ones);
  }
  std::array<std::uint8_t, kMaxOnes> masked;
  const std::size_t in_front = std::min(bytes.size(), ones.bytes);
  std::transform(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(in_front),
                 ones.padded + kFoldBytes, masked.begin(), std::bit_or<>());
  return crc32(crc32(crc, {masked.data(), in_front}), bytes.subspan(in_front));
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

Crc32Shift::Crc32Shift(std::size_t bytes) : factor_(factor_of(bytes)) {}

std::uint32_t Crc32Shift::combine(std::uint32_t crc_of_a, std::uint32_t crc_of_b) const {
  return multiply(crc_of_a, factor_) ^ crc_of_b;
}

} // namespace weir::wire
