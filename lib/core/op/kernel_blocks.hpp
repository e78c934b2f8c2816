// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Sums of blocks of 32 numbers of f8 that have one scale (OCP MX 1.0). Part of kernel_impl.hpp.
///
/// A payload of P bytes has P / 33 blocks: their codes, then their scales, then zeros. The codes of
/// a vector are those of one block or two, as Float8By puts them into its four parts.

#include "op/kernel.hpp"
#include "op/kernel_narrow.hpp"

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

#if defined(__F16C__)

constexpr std::size_t kBlock = 32; // codes
constexpr std::size_t kVectorBlocks = kVectorBytes / kBlock;
constexpr unsigned kGroupVectors = 2; // that are folded together
constexpr std::size_t kGroupBlocks = kGroupVectors * kVectorBlocks;
constexpr std::size_t kTileBlocks = 16;
constexpr std::int32_t kFloatInfinity = 0x7f800000;
constexpr std::int32_t kFloatMagnitude = 0x7fffffff;

/// What a format's blocks differ in.
template <typename Format>
struct BlockFormat;

template <>
struct BlockFormat<E4m3> {
  static constexpr std::int32_t kLargestExponent = 8;
  static constexpr float kLargest = 448;
  static constexpr std::int32_t kDecodedBelow = 8; // decoded numbers are 2^-8 of the values
  static constexpr std::int32_t kInfinityCode = 0x7f;
  static constexpr std::int32_t kNanCode = 0x7f;
};

template <>
struct BlockFormat<E5m2> {
  static constexpr std::int32_t kLargestExponent = 15;
  static constexpr float kLargest = 57344;
  static constexpr std::int32_t kDecodedBelow = 0;
  static constexpr std::int32_t kInfinityCode = 0x7c;
  static constexpr std::int32_t kNanCode = 0x7e;
};

/// From this scale on a product may be infinite, or no number. Below it each product is a number of
/// f32 (its last bit is 2^-143 or above), so that a fused multiplication and addition rounds as
/// both do.
template <typename Format>
constexpr std::uint8_t kFirstLargeScale = 255 - BlockFormat<Format>::kLargestExponent;

enum class Scales : std::uint8_t { small, any };

// ------------------------------------------------------------------------- what the levels have

using Indices = std::make_index_sequence<kVectorBytes / sizeof(float)>;

/// Of its lanes, each with the one whose number differs in this bit.
template <std::size_t kDistance, std::size_t... kLanes>
[[gnu::always_inline]] inline Ints swapped(Ints lanes, std::index_sequence<kLanes...> /*Indices*/) {
  return __builtin_shufflevector(lanes, lanes, static_cast<int>(kLanes ^ kDistance)...);
}

template <int kLane, std::size_t... kLanes>
[[gnu::always_inline]] inline Floats everywhere(Floats lanes,
                                                std::index_sequence<kLanes...> /*Indices*/) {
  return __builtin_shufflevector(lanes, lanes, (static_cast<int>(kLanes * 0) + kLane)...);
}

[[gnu::always_inline]] inline Ints magnitude_bits(Floats value) {
  return reinterpret_cast<Ints>(value) & kFloatMagnitude;
}

#if defined(__AVX512BW__)
[[gnu::always_inline]] inline Ints larger(Ints a, Ints b) {
  return reinterpret_cast<Ints>(_mm512_maskz_max_epi32(kAllLanes, reinterpret_cast<__m512i>(a),
                                                       reinterpret_cast<__m512i>(b)));
}

[[gnu::always_inline]] inline bool has_special(Ints magnitudes) {
  return _mm512_cmpge_epi32_mask(reinterpret_cast<__m512i>(magnitudes),
                                 _mm512_set1_epi32(kFloatInfinity)) != 0;
}

[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}

/// a, or b where the mask's bits are not set.
[[gnu::always_inline]] inline Ints merged(Ints a, Ints b, std::int32_t mask) {
  constexpr int kThirdWhereSecond = 0xb8;
  return reinterpret_cast<Ints>(
      _mm512_ternarylogic_epi32(reinterpret_cast<__m512i>(b), _mm512_set1_epi32(mask),
                                reinterpret_cast<__m512i>(a), kThirdWhereSecond));
}
#else
[[gnu::always_inline]] inline Ints larger(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm256_max_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

[[gnu::always_inline]] inline bool has_special(Ints magnitudes) {
  const Ints is_special = magnitudes > kFloatInfinity - 1;
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(is_special)) != 0;
}

/// AVX2 has no such instruction, and the products are exact.
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return c + a * b;
}

[[gnu::always_inline]] inline Ints merged(Ints a, Ints b, std::int32_t mask) {
  return (a & mask) | (b & ~mask);
}
#endif

#if defined(__AVX512VBMI__)
/// Each part has lanes of both blocks: its lower half of the first.
struct VectorScales {
  Floats both;

  [[gnu::always_inline]] static VectorScales at(const float* scales) {
    return {_mm512_mask_broadcastss_ps(_mm512_set1_ps(scales[0]), 0xff00, _mm_load_ss(scales + 1))};
  }

  template <int kVector>
  [[gnu::always_inline]] static VectorScales from(Floats by_block) {
    constexpr int a = kVector * 8;
    constexpr int b = a + 4;
    return {__builtin_shufflevector(by_block, by_block, a, a, a, a, a, a, a, a, b, b, b, b, b, b, b,
                                    b)};
  }

  [[gnu::always_inline]] Floats of(unsigned /*part*/) const { return both; }
};
#elif defined(__AVX512BW__)
/// Parts 0 and 2 have the first block, the others the second.
struct VectorScales {
  Floats each[2];

  [[gnu::always_inline]] static VectorScales at(const float* scales) {
    return {{_mm512_set1_ps(scales[0]), _mm512_set1_ps(scales[1])}};
  }

  template <int kVector>
  [[gnu::always_inline]] static VectorScales from(Floats by_block) {
    return {{everywhere<kVector * 8>(by_block, Indices()),
             everywhere<kVector * 8 + 4>(by_block, Indices())}};
  }

  [[gnu::always_inline]] Floats of(unsigned part) const { return each[part % 2]; }
};
#else
/// All parts have the same block.
struct VectorScales {
  Floats one;

  [[gnu::always_inline]] static VectorScales at(const float* scales) {
    return {_mm256_broadcast_ss(scales)};
  }

  template <int kVector>
  [[gnu::always_inline]] static VectorScales from(Floats by_block) {
    return {everywhere<kVector * 4>(by_block, Indices())};
  }

  [[gnu::always_inline]] Floats of(unsigned /*part*/) const { return one; }
};
#endif

#if defined(__AVX512BW__)
/// The largest magnitudes of two vectors' blocks, of each block in four lanes.
[[gnu::always_inline]] inline Ints by_block(Ints first, Ints second) {
  return larger(__builtin_shufflevector(first, second, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24,
                                        25, 26, 27),
                __builtin_shufflevector(first, second, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23,
                                        28, 29, 30, 31));
}

/// The lowest byte of each block's lanes.
[[gnu::always_inline]] inline void store_scales(std::byte* to, Ints by_block) {
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(kAllLanes, reinterpret_cast<__m512i>(by_block));
  const __m128i first_four =
      _mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0);
  const int four = _mm_cvtsi128_si32(_mm_shuffle_epi8(bytes, first_four));
  __builtin_memcpy(to, &four, sizeof four);
}
#else
/// The largest magnitudes of two vectors' blocks, of each block in four lanes.
[[gnu::always_inline]] inline Ints by_block(Ints first, Ints second) {
  return larger(__builtin_shufflevector(first, second, 0, 1, 2, 3, 8, 9, 10, 11),
                __builtin_shufflevector(first, second, 4, 5, 6, 7, 12, 13, 14, 15));
}

/// The lowest byte of each block's lanes.
[[gnu::always_inline]] inline void store_scales(std::byte* to, Ints by_block) {
  to[0] = static_cast<std::byte>(by_block[0]);
  to[1] = static_cast<std::byte>(by_block[4]);
}
#endif

#if defined(__AVX512BW__) && !defined(__AVX512VBMI__)
/// The largest magnitude of each block in the lanes of its half.
[[gnu::always_inline]] inline Ints largest_by_half(const Parts<float, 4>& sum) {
  const Ints first = larger(magnitude_bits(sum.part[0]), magnitude_bits(sum.part[2]));
  const Ints second = larger(magnitude_bits(sum.part[1]), magnitude_bits(sum.part[3]));
  return larger(__builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20,
                                        21, 22, 23),
                __builtin_shufflevector(first, second, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27,
                                        28, 29, 30, 31));
}
#else
/// The largest magnitude of each block in the lanes of its half; or of the one block in all.
[[gnu::always_inline]] inline Ints largest_by_half(const Parts<float, 4>& sum) {
  return larger(larger(magnitude_bits(sum.part[0]), magnitude_bits(sum.part[1])),
                larger(magnitude_bits(sum.part[2]), magnitude_bits(sum.part[3])));
}
#endif

/// Bytes from the lowest ones of four parts, in the order of the codes.
[[gnu::always_inline]] inline Vector<std::uint8_t> interleaved(const Ints (&part)[4]) {
  const Ints first = merged(part[0], part[2] << 8, 0xff);
  const Ints second = merged(part[1], part[3] << 8, 0xff);
  const Ints pairs = merged(first, second << 16, 0xffff);
#if defined(__AVX512BW__)
  const __m512i lower_pairs_first =
      _mm512_set_epi8(15, 14, 11, 10, 7, 6, 3, 2, 13, 12, 9, 8, 5, 4, 1, 0, 15, 14, 11, 10, 7, 6, 3,
                      2, 13, 12, 9, 8, 5, 4, 1, 0, 15, 14, 11, 10, 7, 6, 3, 2, 13, 12, 9, 8, 5, 4,
                      1, 0, 15, 14, 11, 10, 7, 6, 3, 2, 13, 12, 9, 8, 5, 4, 1, 0);
  const auto quads = reinterpret_cast<Vector<std::uint64_t>>(
      _mm512_shuffle_epi8(reinterpret_cast<__m512i>(pairs), lower_pairs_first));
#if defined(__AVX512VBMI__)
  return reinterpret_cast<Vector<std::uint8_t>>(quads);
#else
  return reinterpret_cast<Vector<std::uint8_t>>(
      __builtin_shufflevector(quads, quads, 0, 2, 4, 6, 1, 3, 5, 7));
#endif
#else
  const __m256i lower_pairs_first =
      _mm256_set_epi8(15, 14, 11, 10, 7, 6, 3, 2, 13, 12, 9, 8, 5, 4, 1, 0, 15, 14, 11, 10, 7, 6, 3,
                      2, 13, 12, 9, 8, 5, 4, 1, 0);
  const auto quads = reinterpret_cast<Vector<std::uint64_t>>(
      _mm256_shuffle_epi8(reinterpret_cast<__m256i>(pairs), lower_pairs_first));
  return reinterpret_cast<Vector<std::uint8_t>>(__builtin_shufflevector(quads, quads, 0, 2, 1, 3));
#endif
}

// ------------------------------------------------------------------------------------ arithmetic

/// The scales of a tile's blocks, for each input.
struct TileScales {
  alignas(kVectorBytes) float of[kMostBlockInputs][kTileBlocks];
};

using ScaleBytes = typename VectorOf<std::uint8_t, kTileBlocks>::type;

/// What decoded numbers are multiplied by. `any`: the scales themselves, of which 255 is NaN.
template <typename Format, Scales kScales>
[[gnu::always_inline]] inline Floats scale_of(Ints code) {
  constexpr std::int32_t up = kScales == Scales::small ? BlockFormat<Format>::kDecodedBelow : 0;
  Ints bits = (code + up) << 23;
  if constexpr (up == 0) {
    bits = code == 0 ? Ints{} + 0x00400000 : bits;
  }
  if constexpr (kScales == Scales::any) {
    bits = code == 255 ? Ints{} + 0x7fc00000 : bits;
  }
  return reinterpret_cast<Floats>(bits);
}

template <typename Format, Scales kScales>
[[gnu::always_inline]] inline void widen(const ScaleBytes& bytes, float* to) {
  const auto codes = reinterpret_cast<__m128i>(bytes);
#if defined(__AVX512BW__)
  const __m512i wide = _mm512_maskz_cvtepu8_epi32(kAllLanes, codes);
  _mm512_store_ps(to, scale_of<Format, kScales>(reinterpret_cast<Ints>(wide)));
#else
  const __m256i first = _mm256_cvtepu8_epi32(codes);
  const __m256i second = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(codes, codes));
  _mm256_store_ps(to, scale_of<Format, kScales>(reinterpret_cast<Ints>(first)));
  _mm256_store_ps(to + 8, scale_of<Format, kScales>(reinterpret_cast<Ints>(second)));
#endif
}

template <typename Format, Scales kScales>
[[gnu::always_inline]] inline Floats product(Floats decoded, Floats scale) {
  if constexpr (kScales == Scales::any) {
    decoded *= static_cast<float>(1 << BlockFormat<Format>::kDecodedBelow);
  }
  return decoded * scale;
}

/// The left fold of kGroupVectors vectors of codes, that begin at this byte of each input.
template <typename Format, Scales kScales>
[[gnu::always_inline]] inline void
sum_group(Parts<float, 4> (&sums)[kGroupVectors], const std::byte* const* inputs, unsigned count,
          std::size_t at, const TileScales& scales, std::size_t in_tile) {
  using Codec = Float8Sum<Format>;
  for (unsigned v = 0; v < kGroupVectors; ++v) {
    sums[v] = Codec::decode(inputs[0] + at + v * kVectorBytes);
    const VectorScales scale = VectorScales::at(scales.of[0] + in_tile + v * kVectorBlocks);
    for (unsigned k = 0; k < 4; ++k) {
      sums[v].part[k] = product<Format, kScales>(sums[v].part[k], scale.of(k));
    }
  }
  for (unsigned i = 1; i < count; ++i) {
    for (unsigned v = 0; v < kGroupVectors; ++v) {
      const Parts<float, 4> next = Codec::decode(inputs[i] + at + v * kVectorBytes);
      const VectorScales scale = VectorScales::at(scales.of[i] + in_tile + v * kVectorBlocks);
      for (unsigned k = 0; k < 4; ++k) {
        sums[v].part[k] =
            kScales == Scales::small
                ? fused(next.part[k], scale.of(k), sums[v].part[k])
                : sums[v].part[k] + product<Format, kScales>(next.part[k], scale.of(k));
      }
    }
  }
}

/// The sign as that of a byte.
[[gnu::always_inline]] inline Ints sign_of_byte(Floats value) {
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(value) >> 24) & 0x80;
}

/// Rounds to nearest even at the format's last bit: adds a number whose last bit has its value. In
/// the lowest byte is the code, more than it is by kCodeOffset; above it is nothing of use.
template <typename Format>
[[gnu::always_inline]] inline Ints code_of(Floats value) {
  constexpr unsigned kCut = 23 - Format::kMantissa;
  constexpr std::int32_t kSmallest = (Format::kRebias + 1) << 23; // its smallest normal number
#if defined(__AVX512BW__)
  constexpr int kLesserMagnitude = 2; // with the first one's sign
  constexpr int kGreaterMagnitude = 3;
  const Floats bounded = _mm512_maskz_range_ps(
      kAllLanes, value, Floats{} + BlockFormat<Format>::kLargest, kLesserMagnitude);
  const Floats normal = _mm512_maskz_range_ps(
      kAllLanes, bounded, reinterpret_cast<Floats>(Ints{} + kSmallest), kGreaterMagnitude);
  const auto power = reinterpret_cast<Floats>(reinterpret_cast<Ints>(normal) &
                                              static_cast<std::int32_t>(0xff800000));
  const auto bits =
      reinterpret_cast<Ints>(fused(power, Floats{} + static_cast<float>(1 << kCut), bounded));
#else
  const Floats bounded =
      lesser<float>(magnitude_of(value), Floats{} + BlockFormat<Format>::kLargest);
  const Ints exponent =
      larger(reinterpret_cast<Ints>(bounded) & kFloatInfinity, Ints{} + kSmallest);
  const auto rounder = reinterpret_cast<Floats>(exponent + static_cast<std::int32_t>(kCut << 23));
  const auto bits = reinterpret_cast<Ints>(bounded + rounder);
#endif
  const Ints code = bits + reinterpret_cast<Ints>(reinterpret_cast<Words>(bits) >> kCut);
  return code ^ sign_of_byte(value);
}

template <typename Format>
constexpr std::uint8_t kCodeOffset = static_cast<std::uint8_t>(
    static_cast<unsigned>(Format::kRebias + 1 + 23 - static_cast<int>(Format::kMantissa))
    << Format::kMantissa);

/// What is infinite or no number has the codes of it.
template <typename Format>
[[gnu::always_inline]] inline Ints special_code_of(Floats value, Ints code) {
  using Of = BlockFormat<Format>;
  constexpr std::int32_t offset = kCodeOffset<Format>;
  const Ints magnitude = magnitude_bits(value);
  const Ints infinity = Of::kInfinityCode == Of::kNanCode ? Ints{} + Of::kNanCode
                                                          : Of::kInfinityCode | sign_of_byte(value);
  code = magnitude == kFloatInfinity ? infinity + offset : code;
  return magnitude > kFloatInfinity ? Ints{} + (Of::kNanCode + offset) : code;
}

enum class Sums : std::uint8_t { finite, any };

using GroupSums = Parts<float, 4>[kGroupVectors];

template <typename Format, Sums kSums>
[[gnu::always_inline]] inline void store_codes(std::byte* to, const Parts<float, 4>& sum,
                                               const VectorScales& inverse) {
  Ints code[4];
  for (unsigned k = 0; k < 4; ++k) {
    const Floats value = sum.part[k] * inverse.of(k);
    code[k] = code_of<Format>(value);
    if constexpr (kSums == Sums::any) {
      code[k] = special_code_of<Format>(value, code[k]);
    }
  }
  store(to, interleaved(code) - kCodeOffset<Format>);
}

/// A new scale for each block, and its codes. `largest`: as by_block() has them.
template <typename Format, Sums kSums>
[[gnu::always_inline]] inline void finish_blocks(std::byte* codes, std::byte* scales,
                                                 const GroupSums& sums, Ints largest) {
  largest = larger(largest, swapped<1>(largest, Indices()));
  largest = larger(largest, swapped<2>(largest, Indices()));
  const Ints exponent = larger((largest >> 23) - BlockFormat<Format>::kLargestExponent, Ints{});
  const auto inverse = reinterpret_cast<Floats>((254 - exponent) << 23);
  store_scales(scales, exponent);
  store_codes<Format, kSums>(codes, sums[0], VectorScales::from<0>(inverse));
  store_codes<Format, kSums>(codes + kVectorBytes, sums[1], VectorScales::from<1>(inverse));
}

/// For sums that are infinite, or no numbers; their block's scale is that of the others.
template <typename Format>
[[gnu::noinline, gnu::cold]] void finish_any(std::byte* codes, std::byte* scales,
                                             const GroupSums& sums) {
  Ints largest[kGroupVectors];
  for (unsigned v = 0; v < kGroupVectors; ++v) {
    Parts<float, 4> finite = sums[v];
    for (Floats& part : finite.part) {
      const Ints magnitude = magnitude_bits(part);
      part = reinterpret_cast<Floats>(magnitude < kFloatInfinity ? magnitude : Ints{});
    }
    largest[v] = largest_by_half(finite);
  }
  finish_blocks<Format, Sums::any>(codes, scales, sums, by_block(largest[0], largest[1]));
}

template <typename Format>
[[gnu::always_inline]] inline void finish(std::byte* codes, std::byte* scales,
                                          const GroupSums& sums) {
  const Ints largest = by_block(largest_by_half(sums[0]), largest_by_half(sums[1]));
  if (__builtin_expect(has_special(largest) ? 1 : 0, 0) != 0) {
    const GroupSums copy = {sums[0], sums[1]}; // or the sums would lie in memory for its sake
    finish_any<Format>(codes, scales, copy);
  } else {
    finish_blocks<Format, Sums::finite>(codes, scales, sums, largest);
  }
}

// ------------------------------------------------------------------------------------------ walk

/// Some of a payload's blocks, at most kTileBlocks.
struct BlockTile {
  std::size_t all = 0;   // blocks of the payload
  std::size_t begin = 0; // of those whose scales are read
  std::size_t end = 0;
  std::size_t first = 0; // of those that are folded
};

[[gnu::always_inline]] inline ScaleBytes scales_at(const std::byte* input, const BlockTile& tile) {
  const std::byte* const from = input + tile.all * kBlock + tile.begin;
  if (tile.end - tile.begin == kTileBlocks) {
    return load<ScaleBytes>(from);
  }
  std::byte padded[kTileBlocks] = {};
  for (std::size_t k = 0; k < tile.end - tile.begin; ++k) {
    padded[k] = from[k];
  }
  return load<ScaleBytes>(padded);
}

/// Whether a scale is too large for fused products.
template <typename Format>
[[gnu::always_inline]] inline bool has_large_scale(const ScaleBytes& largest) {
  const auto is_large = reinterpret_cast<typename VectorOf<std::uint64_t, kTileBlocks>::type>(
      largest >= kFirstLargeScale<Format>);
  return (is_large[0] | is_large[1]) != 0;
}

template <typename Format, Scales kScales>
[[gnu::always_inline]] inline bool read_scales(const std::byte* const* inputs, unsigned count,
                                               const BlockTile& tile, TileScales& scales) {
  ScaleBytes largest = {};
  for (unsigned i = 0; i < count; ++i) {
    const ScaleBytes bytes = scales_at(inputs[i], tile);
    largest = bytes > largest ? bytes : largest;
    widen<Format, kScales>(bytes, scales.of[i]);
  }
  return has_large_scale<Format>(largest);
}

template <typename Format, Scales kScales>
[[gnu::always_inline]] inline void fold_tile(std::byte* out, const std::byte* const* inputs,
                                             unsigned count, const BlockTile& tile,
                                             const TileScales& scales) {
  for (std::size_t block = tile.first; block < tile.end; block += kGroupBlocks) {
    // If the last group is not whole: the last blocks, some of them once more.
    const std::size_t at = block + kGroupBlocks <= tile.end ? block : tile.end - kGroupBlocks;
    GroupSums sums;
    sum_group<Format, kScales>(sums, inputs, count, at * kBlock, scales, at - tile.begin);
    finish<Format>(out + at * kBlock, out + tile.all * kBlock + at, sums);
  }
}

template <typename Format>
[[gnu::noinline, gnu::cold]] void fold_large_scales(std::byte* out, const std::byte* const* inputs,
                                                    unsigned count, const BlockTile& tile,
                                                    TileScales& scales) {
  read_scales<Format, Scales::any>(inputs, count, tile, scales);
  fold_tile<Format, Scales::any>(out, inputs, count, tile, scales);
}

template <typename Format>
[[gnu::always_inline]] inline void fold_all_blocks(std::byte* out, const std::byte* const* inputs,
                                                   unsigned count, std::size_t blocks) {
  TileScales scales;
  for (std::size_t first = 0; first < blocks; first += kTileBlocks) {
    BlockTile tile{.all = blocks, .begin = first, .end = first + kTileBlocks, .first = first};
    if (tile.end > blocks) { // so that whole vectors of scales are read
      tile.end = blocks;
      tile.begin = blocks < kTileBlocks ? 0 : blocks - kTileBlocks;
    }
    if (read_scales<Format, Scales::small>(inputs, count, tile, scales)) {
      fold_large_scales<Format>(out, inputs, count, tile, scales);
    } else {
      fold_tile<Format, Scales::small>(out, inputs, count, tile, scales);
    }
  }
}

/// A payload with fewer blocks than a group, with blocks behind them that are zero.
template <typename Format>
[[gnu::noinline, gnu::cold]] void fold_few_blocks(std::byte* out, const std::byte* const* inputs,
                                                  unsigned count, std::size_t blocks) {
  constexpr std::size_t codes = kGroupBlocks * kBlock;
  std::byte padded[kMostBlockInputs][codes + kGroupBlocks];
  const std::byte* at[kMostBlockInputs];
  for (unsigned i = 0; i < count; ++i) {
    __builtin_memset(padded[i], 0, sizeof padded[i]);
    __builtin_memcpy(padded[i], inputs[i], blocks * kBlock);
    __builtin_memcpy(padded[i] + codes, inputs[i] + blocks * kBlock, blocks);
    at[i] = padded[i];
  }
  std::byte sum[codes + kGroupBlocks];
  fold_all_blocks<Format>(sum, at, count, kGroupBlocks);
  __builtin_memcpy(out, sum, blocks * kBlock);
  __builtin_memcpy(out + blocks * kBlock, sum + codes, blocks);
}

/// The ReduceKernel of find_block_sum.
template <typename Format>
void sum_blocks(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
                Copies copies) {
  const std::size_t blocks = bytes / (kBlock + 1);
  if (blocks >= kGroupBlocks) {
    fold_all_blocks<Format>(out, inputs, count, blocks);
  } else {
    fold_few_blocks<Format>(out, inputs, count, blocks);
  }
  for (std::size_t at = blocks * (kBlock + 1); at < bytes; ++at) {
    out[at] = {};
  }
  for (unsigned i = 0; i < copies.count; ++i) {
    __builtin_memcpy(copies.to[i], out, bytes);
  }
}

constexpr ReduceKernel kBlockSumKernels[kBlockSums] = {sum_blocks<E4m3>, sum_blocks<E5m2>};

#else

constexpr ReduceKernel kBlockSumKernels[kBlockSums] = {}; // the loops of programs are as good

#endif

} // namespace

} // namespace weir::op
