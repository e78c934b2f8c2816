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
constexpr std::size_t kTileBlocks = 32;
constexpr unsigned kTileGroups = kTileBlocks / kGroupBlocks;
constexpr unsigned kScaledGroups = 4; // whose scales are made together
constexpr std::int32_t kFloatInfinity = 0x7f800000;
constexpr std::int32_t kFloatMagnitude = 0x7fffffff;

/// What a format's blocks differ in.
template <typename Format>
struct BlockFormat;

template <>
struct BlockFormat<E4m3> {
  static constexpr std::int32_t kLargestExponent = 8;
  static constexpr std::uint8_t kLargestCode = 0x7e;
  static constexpr std::int32_t kDecodedBelow = 8; // decoded numbers are 2^-8 of the values
  static constexpr std::int32_t kInfinityCode = 0x7f;
  static constexpr std::int32_t kNanCode = 0x7f;
};

template <>
struct BlockFormat<E5m2> {
  static constexpr std::int32_t kLargestExponent = 15;
  static constexpr std::uint8_t kLargestCode = 0x7b;
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

using Bytes = Vector<std::uint8_t>;

constexpr std::size_t kLaneCount = kVectorBytes / sizeof(float);
using AllLanes = std::make_index_sequence<kLaneCount>;
using AllBytes = std::make_index_sequence<kVectorBytes>;

#if defined(__AVX512BW__)
[[gnu::always_inline]] inline Ints larger(Ints a, Ints b) {
  return reinterpret_cast<Ints>(_mm512_maskz_max_epi32(kAllLanes, reinterpret_cast<__m512i>(a),
                                                       reinterpret_cast<__m512i>(b)));
}

[[gnu::always_inline]] inline bool has_special(Ints magnitudes, Ints infinity) {
  return _mm512_cmpge_epi32_mask(reinterpret_cast<__m512i>(magnitudes),
                                 reinterpret_cast<__m512i>(infinity)) != 0;
}

[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}

/// The sum of a value and 2^kCut times a power of two.
template <unsigned kCut>
[[gnu::always_inline]] inline Ints with_rounder(Floats value, Ints power) {
  return reinterpret_cast<Ints>(
      fused(reinterpret_cast<Floats>(power), Floats{} + static_cast<float>(1 << kCut), value));
}

/// Of each lane the sum of its halves (signed) times those of `factors`.
[[gnu::always_inline]] inline Ints dot(Ints halves, Ints factors) {
  return reinterpret_cast<Ints>(
      _mm512_madd_epi16(reinterpret_cast<__m512i>(halves), reinterpret_cast<__m512i>(factors)));
}

/// The lower halves of two parts' lanes, those of the second above. `lower`: ffff in each lane.
[[gnu::always_inline]] inline Shorts lower_halves(Ints first, Ints second, Ints lower) {
  constexpr int kThirdWhereSecond = 0xb8;
  return reinterpret_cast<Shorts>(_mm512_ternarylogic_epi32(
      reinterpret_cast<__m512i>(second << 16), reinterpret_cast<__m512i>(lower),
      reinterpret_cast<__m512i>(first), kThirdWhereSecond));
}

[[gnu::always_inline]] inline Bytes lesser_bytes(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(
      _mm512_min_epu8(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

/// A byte with each lane's sign, in each 16 bytes four of each part.
[[gnu::always_inline]] inline Bytes sign_bytes(const Parts<float, 4>& value) {
  const auto part = [&](unsigned k) { return reinterpret_cast<__m512i>(value.part[k]); };
  return reinterpret_cast<Bytes>(_mm512_packs_epi16(_mm512_packs_epi32(part(0), part(1)),
                                                    _mm512_packs_epi32(part(2), part(3))));
}
#else
[[gnu::always_inline]] inline Ints larger(Ints a, Ints b) {
  return reinterpret_cast<Ints>(
      _mm256_max_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

[[gnu::always_inline]] inline bool has_special(Ints magnitudes, Ints infinity) {
  const Ints is_special = magnitudes >= infinity;
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(is_special)) != 0;
}

/// AVX2 has no such instruction, and the products are exact.
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return c + a * b;
}

/// The sum of a value and 2^kCut times a power of two.
template <unsigned kCut>
[[gnu::always_inline]] inline Ints with_rounder(Floats value, Ints power) {
  return reinterpret_cast<Ints>(
      value + reinterpret_cast<Floats>(power + static_cast<std::int32_t>(kCut << 23)));
}

/// Of each lane the sum of its halves (signed) times those of `factors`.
[[gnu::always_inline]] inline Ints dot(Ints halves, Ints factors) {
  return reinterpret_cast<Ints>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(halves), reinterpret_cast<__m256i>(factors)));
}

/// The lower halves of two parts' lanes, those of the second above.
[[gnu::always_inline]] inline Shorts lower_halves(Ints first, Ints second, Ints /*lower*/) {
  return reinterpret_cast<Shorts>(_mm256_blend_epi16(
      reinterpret_cast<__m256i>(first), reinterpret_cast<__m256i>(second << 16), 0xaa));
}

[[gnu::always_inline]] inline Bytes lesser_bytes(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(
      _mm256_min_epu8(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

/// A byte with each lane's sign, in each 16 bytes four of each part.
[[gnu::always_inline]] inline Bytes sign_bytes(const Parts<float, 4>& value) {
  const auto part = [&](unsigned k) { return reinterpret_cast<__m256i>(value.part[k]); };
  return reinterpret_cast<Bytes>(_mm256_packs_epi16(_mm256_packs_epi32(part(0), part(1)),
                                                    _mm256_packs_epi32(part(2), part(3))));
}
#endif

#if defined(__AVX512VBMI__)
/// Each part has lanes of both blocks: its lower half of the first.
struct VectorScales {
  Floats both;

  [[gnu::always_inline]] static VectorScales at(const float* scales) {
    return {_mm512_mask_broadcastss_ps(_mm512_set1_ps(scales[0]), 0xff00, _mm_load_ss(scales + 1))};
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

  [[gnu::always_inline]] Floats of(unsigned part) const { return each[part % 2]; }
};
#else
/// All parts have the same block.
struct VectorScales {
  Floats one;

  [[gnu::always_inline]] static VectorScales at(const float* scales) {
    return {_mm256_broadcast_ss(scales)};
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
#else
/// The largest magnitudes of two vectors' blocks, of each block in four lanes.
[[gnu::always_inline]] inline Ints by_block(Ints first, Ints second) {
  return larger(__builtin_shufflevector(first, second, 0, 1, 2, 3, 8, 9, 10, 11),
                __builtin_shufflevector(first, second, 4, 5, 6, 7, 12, 13, 14, 15));
}
#endif

#if defined(__AVX512BW__) && !defined(__AVX512VBMI__)
/// The largest magnitude of each block in the lanes of its half.
[[gnu::always_inline]] inline Ints largest_by_half(const Ints (&part)[4]) {
  const Ints first = larger(part[0], part[2]);
  const Ints second = larger(part[1], part[3]);
  return larger(__builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20,
                                        21, 22, 23),
                __builtin_shufflevector(first, second, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27,
                                        28, 29, 30, 31));
}
#else
/// The largest magnitude of each block in the lanes of its half; or of the one block in all.
[[gnu::always_inline]] inline Ints largest_by_half(const Ints (&part)[4]) {
  return larger(larger(part[0], part[1]), larger(part[2], part[3]));
}
#endif

/// In each four lanes, the larger ones of two that are kApart from one another: two of a, then two
/// of b.
template <std::size_t kApart, std::size_t... kLanes>
[[gnu::always_inline]] inline Ints larger_of_two(Ints a, Ints b,
                                                 std::index_sequence<kLanes...> /*AllLanes*/) {
  constexpr auto from = [](std::size_t to) {
    return static_cast<int>(to % 4 / 2 * kLaneCount + to / 4 * 4 + to % 2 * (3 - kApart));
  };
  constexpr auto apart = static_cast<int>(kApart);
  return larger(__builtin_shufflevector(a, b, from(kLanes)...),
                __builtin_shufflevector(a, b, (from(kLanes) + apart)...));
}

/// Each four lanes are of one block in four groups. Returns the blocks group by group.
template <std::size_t... kLanes>
[[gnu::always_inline]] inline Ints by_group(Ints by_block,
                                            std::index_sequence<kLanes...> /*AllLanes*/) {
  return __builtin_shufflevector(
      by_block, by_block, static_cast<int>(kLanes % kGroupBlocks * 4 + kLanes / kGroupBlocks)...);
}

/// Where each of 16 bytes comes from, if there are the first part's four, then those of the second
/// and so on: parts 0 and 1 have the codes of even places, 2 and 3 the others.
constexpr std::size_t from_parts(std::size_t to) {
  return to % 2 * 8 + to / 2;
}

/// Each 16 bytes by themselves.
template <std::size_t (*kFrom)(std::size_t), std::size_t... kBytes>
[[gnu::always_inline]] inline Bytes shuffled(Bytes bytes, std::index_sequence<kBytes...> /*all*/) {
  return __builtin_shufflevector(bytes, bytes,
                                 static_cast<int>(kBytes / 16 * 16 + kFrom(kBytes % 16))...);
}

/// Bytes in the order of codes, that each 16 bytes have in it.
[[gnu::always_inline]] inline Bytes in_order(Bytes bytes) {
#if defined(__AVX512VBMI__)
  return bytes;
#else
  const auto eights = reinterpret_cast<Vector<std::uint64_t>>(bytes);
#if defined(__AVX512BW__)
  return reinterpret_cast<Bytes>(__builtin_shufflevector(eights, eights, 0, 2, 4, 6, 1, 3, 5, 7));
#else
  return reinterpret_cast<Bytes>(__builtin_shufflevector(eights, eights, 0, 2, 1, 3));
#endif
#endif
}

#if defined(__AVX512VBMI__)
/// The second bytes of two parts, twice in each 16 bytes.
template <std::size_t... kBytes>
[[gnu::always_inline]] inline Vector<std::uint64_t>
second_of_two(Ints even, Ints odd, std::index_sequence<kBytes...> /*AllBytes*/) {
  return reinterpret_cast<Vector<std::uint64_t>>(__builtin_shufflevector(
      reinterpret_cast<Bytes>(even), reinterpret_cast<Bytes>(odd),
      static_cast<int>(kBytes % 2 * kVectorBytes + kBytes / 16 * 16 + kBytes % 8 / 2 * 4 + 1)...));
}

/// The second byte of each lane of four parts, whose first one is 0, as each 16 bytes have them.
[[gnu::always_inline]] inline Bytes second_bytes(const Ints (&part)[4], Ints /*lower*/) {
  const auto first = second_of_two(part[0], part[2], AllBytes());
  const auto second = second_of_two(part[1], part[3], AllBytes());
  return reinterpret_cast<Bytes>(__builtin_shufflevector(first, second, 0, 8, 2, 10, 4, 12, 6, 14));
}
#else
/// The same if each lane has its code of parts 0, 2, 1 and 3.
constexpr std::size_t from_lanes(std::size_t to) {
  return to % 2 + to / 2 % 4 * 4 + to / 8 * 2;
}

/// The second byte of each lane of four parts, whose first one is 0, as each 16 bytes have them.
[[gnu::always_inline]] inline Bytes second_bytes(const Ints (&part)[4], Ints lower) {
  const Shorts even = lower_halves(part[0], part[1], lower);
  const Shorts odd = lower_halves(part[2], part[3], lower);
  return shuffled<from_lanes>(reinterpret_cast<Bytes>((even >> 8) | odd), AllBytes());
}
#endif

// ------------------------------------------------------------------------------------ arithmetic

/// The scales of a tile's blocks, for each input.
struct TileScales {
  alignas(kVectorBytes) float of[kMostBlockInputs][kTileBlocks];
};

constexpr std::size_t kReadScales = 16; // together
using ScaleBytes = typename VectorOf<std::uint8_t, kReadScales>::type;

/// What decoded numbers are multiplied by. `any`: the scales themselves, of which 255 is NaN.
template <typename Format, Scales kScales>
[[gnu::always_inline]] inline Floats scale_of(Ints code) {
  constexpr std::int32_t up = kScales == Scales::small ? BlockFormat<Format>::kDecodedBelow : 0;
  Ints bits = (code + up) << 23;
  if constexpr (up == 0) {
    bits = larger(bits, Ints{} + 0x00400000); // of code 0
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
  _mm512_storeu_ps(to, scale_of<Format, kScales>(reinterpret_cast<Ints>(wide)));
#else
  const __m256i first = _mm256_cvtepu8_epi32(codes);
  const __m256i second = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(codes, codes));
  _mm256_storeu_ps(to, scale_of<Format, kScales>(reinterpret_cast<Ints>(first)));
  _mm256_storeu_ps(to + 8, scale_of<Format, kScales>(reinterpret_cast<Ints>(second)));
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

/// Keeps a constant in a register. gcc would make it anew for each group, from an integer's.
template <typename V>
[[gnu::always_inline]] inline V kept(V value) {
  __asm__("" : "+v"(value));
  return value;
}

constexpr unsigned kSecondByte = 8;

/// What rounding needs. Codes are made in the second byte of a lane, where dot() leaves the first
/// one 0.
template <typename Format>
struct Rounding {
  static constexpr unsigned kCut = 23 - Format::kMantissa;
  static constexpr std::int32_t kUnits = 1 << kSecondByte;
  static constexpr std::int32_t kExponent = 1 << (kSecondByte + Format::kMantissa - 7);
  static constexpr auto kOffset = static_cast<std::uint8_t>(
      static_cast<unsigned>(Format::kRebias + 1 + static_cast<std::int32_t>(kCut))
      << Format::kMantissa);

  Ints magnitude = kept(Ints{} + kFloatMagnitude);
  Ints lower = kept(Ints{} + 0xffff);
  Ints infinity = kept(Ints{} + kFloatInfinity);
  Ints smallest = kept(Ints{} + ((Format::kRebias + 1) << 23)); // the smallest normal number
  Ints weights = kept(Ints{} + (kExponent << 16 | kUnits));
  Bytes offset = kept(Bytes{} + kOffset);
  Bytes largest = kept(Bytes{} + BlockFormat<Format>::kLargestCode);
  Bytes beside = kept(Bytes{} + 0x80); // bits of VectorSums::beside that codes have
};

/// Rounds a magnitude to nearest even at the format's last bit: adds a number whose last bit has
/// its value. Then the lower half counts such bits, and the upper half is the exponent. The code in
/// the second byte is more than it is by kOffset.
template <typename Format>
[[gnu::always_inline]] inline Ints code_of(Floats magnitude, const Rounding<Format>& by) {
  const Ints power = larger(reinterpret_cast<Ints>(magnitude), by.smallest) & by.infinity;
  return dot(with_rounder<Rounding<Format>::kCut>(magnitude, power), by.weights);
}

/// What is summed of one vector of codes.
struct VectorSums {
  Ints magnitude[4];
  Bytes beside; // has the signs of the codes, in the order of second_bytes()

  [[gnu::always_inline]] Ints largest() const { return largest_by_half(magnitude); }
};

template <typename Format>
[[gnu::always_inline]] inline VectorSums vector_sums(const Parts<float, 4>& sum,
                                                     const Rounding<Format>& by) {
  VectorSums sums;
  sums.beside = shuffled<from_parts>(sign_bytes(sum), AllBytes());
  for (unsigned k = 0; k < 4; ++k) {
    sums.magnitude[k] = reinterpret_cast<Ints>(sum.part[k]) & by.magnitude;
  }
  return sums;
}

/// A magnitude past the largest code gives that one.
template <typename Format>
[[gnu::always_inline]] inline void store_codes(std::byte* to, const VectorSums& sums,
                                               const VectorScales& inverse,
                                               const Rounding<Format>& by) {
  Ints code[4];
  for (unsigned k = 0; k < 4; ++k) {
    code[k] = code_of(reinterpret_cast<Floats>(sums.magnitude[k]) * inverse.of(k), by);
  }
  const Bytes codes = lesser_bytes(second_bytes(code, by.lower) - by.offset, by.largest);
  store(to, in_order(codes | (sums.beside & by.beside)));
}

/// What is infinite or no number has the codes of it, and counts as 0 for its block's scale.
template <typename Format>
[[gnu::always_inline]] inline void take_specials(VectorSums& sums, const Rounding<Format>& by) {
  using Of = BlockFormat<Format>;
  Ints infinite[4];
  Ints nan[4];
  for (unsigned k = 0; k < 4; ++k) {
    Ints& magnitude = sums.magnitude[k];
    infinite[k] = (magnitude == kFloatInfinity) & (Of::kInfinityCode << kSecondByte);
    nan[k] = (magnitude > kFloatInfinity) & (Of::kNanCode << kSecondByte);
    magnitude = magnitude < kFloatInfinity ? magnitude : Ints{};
  }
  const Bytes infinities = second_bytes(infinite, by.lower);
  const Bytes nans = second_bytes(nan, by.lower);
  const Bytes unsigned_ones = Of::kInfinityCode == Of::kNanCode ? infinities | nans : nans;
  sums.beside = unsigned_ones != 0 ? unsigned_ones : (sums.beside & by.beside) | infinities;
}

/// Of the vectors that are folded together.
struct GroupSums {
  VectorSums vector[kGroupVectors];
  Ints largest; // as by_block() has it

  [[gnu::always_inline]] void find_largest() {
    largest = by_block(vector[0].largest(), vector[1].largest());
  }
};

/// Of kScaledGroups groups, the largest magnitude of each block.
[[gnu::always_inline]] inline Ints largest_of(const GroupSums* sums) {
  const Ints first = larger_of_two<2>(sums[0].largest, sums[1].largest, AllLanes());
  const Ints second = larger_of_two<2>(sums[2].largest, sums[3].largest, AllLanes());
  return by_group(larger_of_two<1>(first, second, AllLanes()), AllLanes());
}

// ------------------------------------------------------------------------------------------ walk

/// Some of a payload's blocks, at most kTileBlocks.
struct BlockTile {
  std::size_t all = 0;   // blocks of the payload
  std::size_t begin = 0; // of those whose scales are read
  std::size_t end = 0;
  std::size_t first = 0; // of those that are folded

  [[gnu::always_inline]] unsigned groups() const {
    return static_cast<unsigned>((end - first + kGroupBlocks - 1) / kGroupBlocks);
  }

  /// A group's first block. If the last group is not whole: the last blocks, some of them once
  /// more.
  [[gnu::always_inline]] std::size_t block_of(unsigned group) const {
    const std::size_t block = first + group * kGroupBlocks;
    return block + kGroupBlocks <= end ? block : end - kGroupBlocks;
  }
};

/// kReadScales scales, or zeros behind fewer.
[[gnu::always_inline]] inline ScaleBytes scales_at(const std::byte* from, std::size_t count) {
#if defined(__AVX512BW__)
  const auto there = static_cast<__mmask16>(count < kReadScales ? (1U << count) - 1 : 0xffffU);
  return reinterpret_cast<ScaleBytes>(_mm_maskz_loadu_epi8(there, from));
#else
  if (count >= kReadScales) {
    return load<ScaleBytes>(from);
  }
  std::byte padded[kReadScales] = {};
  for (std::size_t k = 0; k < count; ++k) {
    padded[k] = from[k];
  }
  return load<ScaleBytes>(padded);
#endif
}

/// Whether a scale is too large for fused products.
template <typename Format>
[[gnu::always_inline]] inline bool has_large_scale(const ScaleBytes& largest) {
  const auto is_large = reinterpret_cast<typename VectorOf<std::uint64_t, kReadScales>::type>(
      largest >= kFirstLargeScale<Format>);
  return (is_large[0] | is_large[1]) != 0;
}

template <typename Format, Scales kScales>
[[gnu::always_inline]] inline bool read_scales(const std::byte* const* inputs, unsigned count,
                                               const BlockTile& tile, TileScales& scales) {
  ScaleBytes largest = {};
  const std::size_t last =
      tile.end - tile.begin < kReadScales ? tile.begin : tile.end - kReadScales;
  for (std::size_t block = tile.begin; block < tile.end; block += kReadScales) {
    const std::size_t at = block < last ? block : last;
    for (unsigned i = 0; i < count; ++i) {
      const ScaleBytes bytes = scales_at(inputs[i] + tile.all * kBlock + at, tile.end - at);
      largest = bytes > largest ? bytes : largest;
      widen<Format, kScales>(bytes, scales.of[i] + (at - tile.begin));
    }
  }
  return has_large_scale<Format>(largest);
}

/// New scales for kScaledGroups groups or fewer, and their codes.
template <typename Format>
[[gnu::always_inline]] inline void store_groups(std::byte* out, const BlockTile& tile,
                                                unsigned first, const GroupSums* sums, Ints largest,
                                                const Rounding<Format>& by) {
  const Ints exponent = larger((largest >> 23) - BlockFormat<Format>::kLargestExponent, Ints{});
  const auto scales =
      __builtin_convertvector(exponent, typename VectorOf<std::uint8_t, kLaneCount>::type);
  alignas(kVectorBytes) std::byte scale[kLaneCount];
  alignas(kVectorBytes) float inverse[kLaneCount];
  store(scale, scales);
  store(reinterpret_cast<std::byte*>(inverse), (254 - exponent) << 23);
  for (unsigned g = 0; g < kScaledGroups && first + g < tile.groups(); ++g) {
    const std::size_t block = tile.block_of(first + g);
    __builtin_memcpy(out + tile.all * kBlock + block, scale + g * kGroupBlocks, kGroupBlocks);
    for (unsigned v = 0; v < kGroupVectors; ++v) {
      store_codes(out + block * kBlock + v * kVectorBytes, sums[g].vector[v],
                  VectorScales::at(inverse + g * kGroupBlocks + v * kVectorBlocks), by);
    }
  }
}

/// The same if there are sums that are infinite, or no numbers.
template <typename Format>
[[gnu::noinline, gnu::cold]] void store_any_groups(std::byte* out, const BlockTile& tile,
                                                   unsigned first, GroupSums* sums) {
  Rounding<Format> by;
  for (unsigned g = 0; g < kScaledGroups && first + g < tile.groups(); ++g) {
    for (VectorSums& vector : sums[g].vector) {
      take_specials(vector, by);
    }
    sums[g].find_largest();
  }
  by.beside = Bytes{} + 0xff;
  store_groups(out, tile, first, sums, largest_of(sums), by);
}

/// First all sums, then all codes: if a group's codes came right after its sums, the CPU would wait
/// for its largest sum.
template <typename Format, Scales kScales>
[[gnu::always_inline]] inline void fold_tile(std::byte* out, const std::byte* const* inputs,
                                             unsigned count, const BlockTile& tile,
                                             const TileScales& scales, const Rounding<Format>& by) {
  GroupSums sums[kTileGroups];
  unsigned group = 0;
  for (; group < tile.groups(); ++group) {
    Parts<float, 4> parts[kGroupVectors];
    const std::size_t block = tile.block_of(group);
    sum_group<Format, kScales>(parts, inputs, count, block * kBlock, scales, block - tile.begin);
    for (unsigned v = 0; v < kGroupVectors; ++v) {
      sums[group].vector[v] = vector_sums(parts[v], by);
    }
    sums[group].find_largest();
  }
  for (; group % kScaledGroups != 0; ++group) {
    sums[group].largest = Ints{};
  }
  for (unsigned first = 0; first < group; first += kScaledGroups) {
    const Ints largest = largest_of(sums + first);
    if (__builtin_expect(has_special(largest, by.infinity) ? 1 : 0, 0) != 0) {
      store_any_groups<Format>(out, tile, first, sums + first);
    } else {
      store_groups(out, tile, first, sums + first, largest, by);
    }
  }
}

template <typename Format>
[[gnu::noinline, gnu::cold]] void fold_large_scales(std::byte* out, const std::byte* const* inputs,
                                                    unsigned count, const BlockTile& tile,
                                                    TileScales& scales) {
  read_scales<Format, Scales::any>(inputs, count, tile, scales);
  fold_tile<Format, Scales::any>(out, inputs, count, tile, scales, Rounding<Format>());
}

template <typename Format>
[[gnu::always_inline]] inline void fold_all_blocks(std::byte* out, const std::byte* const* inputs,
                                                   unsigned count, std::size_t blocks) {
  TileScales scales;
  const Rounding<Format> by;
  for (std::size_t first = 0; first < blocks; first += kTileBlocks) {
    BlockTile tile{.all = blocks, .begin = first, .end = first + kTileBlocks, .first = first};
    tile.end = tile.end < blocks ? tile.end : blocks;
    if (tile.end - first < kReadScales) { // so that a whole vector of scales is read
      tile.begin = blocks < kReadScales ? 0 : blocks - kReadScales;
    }
    if (read_scales<Format, Scales::small>(inputs, count, tile, scales)) {
      fold_large_scales<Format>(out, inputs, count, tile, scales);
    } else {
      fold_tile<Format, Scales::small>(out, inputs, count, tile, scales, by);
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
    __builtin_memset(out + bytes - kBlock, 0, kBlock); // what is left there, and scales to come
    fold_all_blocks<Format>(out, inputs, count, blocks);
  } else {
    __builtin_memset(out, 0, bytes);
    fold_few_blocks<Format>(out, inputs, count, blocks);
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
