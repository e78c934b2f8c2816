// SPDX-License-Identifier: BSD-3-Clause

/// Folding as in Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
/// Instruction" (Intel, 2009), four vectors of four 128-bit lanes at a time. Packets are short, so
/// no length may need extra steps at the end: the first step is filled with zeros in front.
///
/// This file is compiled for VPCLMULQDQ and AVX-512 and called on CPUs that have both. It must not
/// use inline functions that other files share: the linker may keep this file's copy for all.

#include "wire/crc32_fold.hpp"
#include "wire/crc32_polynomial.hpp"

#include <immintrin.h>

#if !defined(__VPCLMULQDQ__) || !defined(__AVX512F__)
#error "compile with -mavx512f -mpclmul -mvpclmulqdq"
#endif

namespace weir::wire {
namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): the file's comment says why

constexpr std::size_t kVectors = 4;
constexpr unsigned kVectorBits = 512;
constexpr std::size_t kVectorBytes = kVectorBits / 8;
constexpr unsigned kLaneBits = 128;
constexpr int kXorOfThree = 0x96;
constexpr int kLowHalves = 0x00;
constexpr int kHighHalves = 0x11;

/// x^n as a factor, shifted left by one: a product of reflected numbers is one bit short.
consteval long long factor(unsigned n) {
  return static_cast<long long>(power_of_x(n)) << 1;
}

/// The factors that move a 128-bit lane forward by `bits`. `low` is for the half in lower memory,
/// which has the higher powers. Each exponent is 32 less than the distance to the end of its half,
/// because a product of two reflected residues gains x^32.
struct LaneFactors {
  long long low;
  long long high;
};

consteval LaneFactors by(unsigned bits) {
  return {factor(bits + 32), factor(bits - 32)};
}

[[gnu::always_inline]] inline __m512i in_every_lane(LaneFactors factors) {
  return _mm512_set_epi64(factors.high, factors.low, factors.high, factors.low, factors.high,
                          factors.low, factors.high, factors.low);
}

[[gnu::always_inline]] inline __m512i fold(__m512i lanes, __m512i factors, __m512i next) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(lanes, factors, kLowHalves),
                                   _mm512_clmulepi64_epi128(lanes, factors, kHighHalves), next,
                                   kXorOfThree);
}

[[gnu::always_inline]] inline __m128i xor_of_lanes(__m512i lanes) {
  const __m256i halves = _mm256_xor_si256(_mm512_maskz_extracti64x4_epi64(0xff, lanes, 0),
                                          _mm512_maskz_extracti64x4_epi64(0xff, lanes, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

/// One lane with the same residue as the four lanes of a vector.
[[gnu::always_inline]] inline __m128i join_lanes(__m512i lanes) {
  constexpr LaneFactors kThree = by(3 * kLaneBits);
  constexpr LaneFactors kTwo = by(2 * kLaneBits);
  constexpr LaneFactors kNext = by(kLaneBits);
  const __m512i factors =
      _mm512_set_epi64(0, 0, kNext.high, kNext.low, kTwo.high, kTwo.low, kThree.high, kThree.low);
  constexpr __mmask8 kLastLane = 0xc0;
  return xor_of_lanes(fold(lanes, factors, _mm512_maskz_mov_epi64(kLastLane, lanes)));
}

/// A lane's remainder: 128 bits to 96, to 64, then Barrett reduction.
[[gnu::always_inline]] inline std::uint32_t remainder_of(__m128i lane) {
  const __m128i low_word = _mm_set_epi32(0, 0, 0, -1);
  const __m128i to_96_and_64 = _mm_set_epi64x(factor(64), factor(96));
  __m128i rest =
      _mm_xor_si128(_mm_clmulepi64_si128(lane, to_96_and_64, 0x00), _mm_srli_si128(lane, 8));
  rest = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(rest, low_word), to_96_and_64, 0x10),
                       _mm_srli_si128(rest, 4));
  const __m128i barrett = _mm_set_epi64x(0x1f7011641LL, 0x1db710641LL); // quotient, polynomial
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(rest, low_word), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_word), barrett, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(rest, quotient), 1));
}

/// The vector that begins `at` bytes into (`padding` zeros, then `bytes`); `words` are those that
/// are not padding. Nothing before `bytes` is read: a load waits for its cache line even where the
/// mask takes nothing from it, and what lies before a payload in a cold frame is in no cache.
[[gnu::always_inline]] inline __m512i padded_vector(const std::uint8_t* bytes, std::size_t padding,
                                                    std::size_t at, __mmask16 words) {
  if (at >= padding) {
    return _mm512_loadu_si512(bytes + (at - padding));
  }
  if (words == 0) {
    return _mm512_setzero_si512();
  }
  const auto first_words = static_cast<__mmask16>(words >> ((padding - at) / 4));
  return _mm512_maskz_expand_epi32(words, _mm512_maskz_loadu_epi32(first_words, bytes));
}

/// The same, with the ones applied and the start register added to the first bytes. `at` and
/// `padding` are multiples of 4.
[[gnu::always_inline]] inline __m512i first_vector(std::uint32_t start, const std::uint8_t* bytes,
                                                   std::size_t padding, std::size_t at,
                                                   const std::uint8_t* ones) {
  const std::uint64_t real_words = ~std::uint64_t{0} << (padding / 4);
  const std::uint64_t first_word = real_words & (~real_words + 1);
  const auto words = static_cast<__mmask16>(real_words >> (at / 4));
  const auto word_of_start = static_cast<__mmask16>(first_word >> (at / 4));
  const __m512i taken =
      _mm512_or_si512(padded_vector(bytes, padding, at, words), _mm512_loadu_si512(ones + at));
  return _mm512_xor_si512(taken, _mm512_maskz_set1_epi32(word_of_start, static_cast<int>(start)));
}

/// The vectors of a step. Not an array: GCC would keep that in memory.
struct Vectors {
  __m512i first, second, third, fourth;
};

[[gnu::always_inline]] inline __m512i vector_at(const std::uint8_t* bytes, std::size_t place) {
  return _mm512_loadu_si512(bytes + place * kVectorBytes);
}

/// A full first step without ones needs no mask.
[[gnu::always_inline]] inline Vectors full_step(std::uint32_t start, const std::uint8_t* bytes) {
  const __m512i start_word = _mm512_maskz_set1_epi32(1, static_cast<int>(start));
  return {_mm512_xor_si512(vector_at(bytes, 0), start_word), vector_at(bytes, 1),
          vector_at(bytes, 2), vector_at(bytes, 3)};
}

[[gnu::always_inline]] inline Vectors padded_step(std::uint32_t start, const std::uint8_t* bytes,
                                                  std::size_t in_step, const Ones& ones) {
  const auto at = [&](std::size_t place) {
    return first_vector(start, bytes, kFoldBytes - in_step, place * kVectorBytes,
                        ones.padded + in_step);
  };
  return {at(0), at(1), at(2), at(3)};
}

/// The register after the first step and all later ones.
[[gnu::always_inline]] inline std::uint32_t fold_rest(Vectors sums, const std::uint8_t* next,
                                                      const std::uint8_t* end) {
  const __m512i by_a_step = in_every_lane(by(kVectors * kVectorBits));
  for (; next != end; next += kFoldBytes) {
    sums = {fold(sums.first, by_a_step, vector_at(next, 0)),
            fold(sums.second, by_a_step, vector_at(next, 1)),
            fold(sums.third, by_a_step, vector_at(next, 2)),
            fold(sums.fourth, by_a_step, vector_at(next, 3))};
  }
  const __m512i by_a_vector = in_every_lane(by(kVectorBits));
  const __m512i by_two = in_every_lane(by(2 * kVectorBits));
  const __m512i front = fold(sums.first, by_a_vector, sums.second);
  const __m512i back = fold(sums.third, by_a_vector, sums.fourth);
  return remainder_of(join_lanes(fold(front, by_two, back)));
}

/// For at most one vector, for example headers.
[[gnu::always_inline]] inline std::uint32_t
fold_short(std::uint32_t start, const std::uint8_t* bytes, std::size_t count, const Ones& ones) {
  return remainder_of(join_lanes(first_vector(start, bytes, kVectorBytes - count, 0,
                                              ones.padded + kFoldBytes - kVectorBytes + count)));
}

} // namespace

std::uint32_t fold_crc32_vpclmul(std::uint32_t start, const std::uint8_t* bytes, std::size_t count,
                                 const Ones& ones) {
  if (count <= kVectorBytes) {
    return fold_short(start, bytes, count, ones);
  }
  const std::size_t in_first_step = first_step_bytes(count);
  const std::uint8_t* rest = bytes + in_first_step;
  return in_first_step == kFoldBytes && ones.bytes == 0
             ? fold_rest(full_step(start, bytes), rest, bytes + count)
             : fold_rest(padded_step(start, bytes, in_first_step, ones), rest, bytes + count);
}

} // namespace weir::wire
