// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Codecs of f16 and f8, by the instructions that this CPU level has: part of kernel_impl.hpp.

#include "op/kernel_codecs.hpp"

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

#if defined(__F16C__)

/// Hides from clang 14 where a value comes from. Else clang compares the f16s, for which there is
/// no instruction.
[[gnu::always_inline]] inline Floats opaque(Floats value) {
#if defined(__clang__)
  __asm__("" : "+v"(value));
#endif
  return value;
}

#if defined(__AVX512BW__)
[[gnu::always_inline]] inline Floats floats_of(HalfVector<std::uint16_t> halves) {
  return opaque(_mm512_maskz_cvtph_ps(kAllLanes, reinterpret_cast<__m256i>(halves)));
}

[[gnu::always_inline]] inline HalfVector<std::uint16_t> halves_of(Floats value) {
  return reinterpret_cast<HalfVector<std::uint16_t>>(
      _mm512_maskz_cvtps_ph(kAllLanes, value, _MM_FROUND_TO_NEAREST_INT));
}
#else
[[gnu::always_inline]] inline Floats floats_of(HalfVector<std::uint16_t> halves) {
  return opaque(_mm256_cvtph_ps(reinterpret_cast<__m128i>(halves)));
}

[[gnu::always_inline]] inline HalfVector<std::uint16_t> halves_of(Floats value) {
  return reinterpret_cast<HalfVector<std::uint16_t>>(
      _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}
#endif

constexpr std::make_index_sequence<kVectorBytes / 2> kOfBoth = {};

/// The f16s of two vectors, one vector after the other. Not as two stores: a load of both could not
/// take them from the store buffer.
template <std::size_t... kIndices>
[[gnu::always_inline]] inline Shorts both(Floats first, Floats second,
                                          std::index_sequence<kIndices...> /*kOfBoth*/) {
  return __builtin_shufflevector(halves_of(first), halves_of(second), kIndices...);
}

/// f16 by the CPU's conversions.
struct Float16 {
  using Number = float;
  static constexpr unsigned kParts = 2;

  [[gnu::always_inline]] static Parts<float, 2> decode(const std::byte* from) {
    return {{floats_of(load<HalfVector<std::uint16_t>>(from)),
             floats_of(load<HalfVector<std::uint16_t>>(from + kVectorBytes / 2))}};
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<float, 2>& value) {
    store(to, both(value.part[0], value.part[1], kOfBoth));
  }
};

/// `value` (not negative) rounded to nearest even, for a format with that many mantissa bits and
/// that smallest normal exponent (of f32, biased). It adds a number whose last bit has the value of
/// the format's last bit, so the FPU rounds at that bit.
template <unsigned kMantissaBits, std::int32_t kSmallestExponent>
[[gnu::always_inline]] inline Floats round_magnitude(Floats value) {
  const Ints exponent = reinterpret_cast<Ints>(value) & 0x7f800000;
  const Ints bounded = greater<std::int32_t>(exponent, Ints{} + (kSmallestExponent << 23));
  const auto rounder =
      reinterpret_cast<Floats>(bounded + static_cast<std::int32_t>((23 - kMantissaBits) << 23));
  return (value + rounder) - rounder;
}

[[gnu::always_inline]] inline Floats magnitude_of(Floats value) {
  return reinterpret_cast<Floats>(reinterpret_cast<Ints>(value) & 0x7fffffff);
}

[[gnu::always_inline]] inline Floats with_sign_of(Floats magnitude, Floats value) {
  const Ints sign = reinterpret_cast<Ints>(value) & static_cast<std::int32_t>(0x80000000);
  return reinterpret_cast<Floats>(reinterpret_cast<Ints>(magnitude) | sign);
}

/// Converts an 8-bit element in the upper byte of each 16-bit lane to f16 and back. `rounded` gives
/// an f32 that is exact in f16; `upper` gives the code of that f16 in the upper byte. The f16 must
/// be multiplied by the given scale. `bounded` makes an f16 that is past the largest element, or
/// any NaN, one that `upper` takes.
template <typename Format>
struct ByteAsHalf;

/// E5M2 has the exponent of f16: it is an f16 cut short. Values that round to 65536 become
/// infinity, as in f16.
template <>
struct ByteAsHalf<E5m2> {
  static constexpr float kScale = 1;

  [[gnu::always_inline]] static Shorts convert(Shorts upper) { return upper; }

  [[gnu::always_inline]] static Floats rounded(Floats value) {
    const Floats past_the_largest = Floats{} + 65536.0F;
    const Floats bounded = lesser<float>(magnitude_of(value), past_the_largest); // a NaN stays
    return with_sign_of(round_magnitude<2, 127 - 14>(bounded), value);
  }

  [[gnu::always_inline]] static Shorts upper(Shorts halves) { return halves & 0xff00; }

  [[gnu::always_inline]] static Shorts bounded(Shorts halves) {
    const auto magnitude = reinterpret_cast<SignedShorts>(halves & 0x7fff);
    return magnitude > 0x7c00 ? Shorts{} + 0x7e00 : halves;
  }
};

/// E4M3 has one exponent bit less: its code moved down by one bit is 2^-8 of its value in f16. The
/// code of 480 would be NaN.
template <>
struct ByteAsHalf<E4m3> {
  static constexpr float kScale = 256;

  [[gnu::always_inline]] static Shorts convert(Shorts upper) {
    const Shorts magnitude = upper & 0x7f00;
    // With 4000 the exponent is all ones.
    const Shorts nan = reinterpret_cast<Shorts>(magnitude == 0x7f00) & 0x4000;
    return (upper & 0x8000) | (magnitude >> 1) | nan;
  }

  [[gnu::always_inline]] static Floats rounded(Floats value) {
    const Floats nan = Floats{} + 480.0F;
    const Floats bounded = lesser<float>(nan, magnitude_of(value)); // a NaN becomes 480
    return with_sign_of(round_magnitude<3, 127 - 6>(bounded) * (1 / kScale), value);
  }

  [[gnu::always_inline]] static Shorts upper(Shorts halves) {
    const Shorts magnitude = (halves << 1) & 0x7f00;
    return magnitude == 0x7f00 ? magnitude : magnitude | (halves & 0x8000);
  }

  [[gnu::always_inline]] static Shorts bounded(Shorts halves) {
    const auto magnitude = reinterpret_cast<SignedShorts>(halves & 0x7fff);
    const SignedShorts nan = SignedShorts{} + (0x7f00 >> 1);
    return reinterpret_cast<Shorts>(lesser<std::int16_t>(nan, magnitude)) | (halves & 0x8000);
  }
};

/// Computes with the values of the elements and rounds any f32. `kScale` is what the f16 of an
/// element is multiplied by, `kRebias` what an f32 of the table adds to the exponent.
template <typename Format>
struct AnyRounding {
  static constexpr float kScale = ByteAsHalf<Format>::kScale;
  static constexpr unsigned kRebias = Format::kRebias;

  [[gnu::always_inline]] static Floats rounded(Floats value) {
    return ByteAsHalf<Format>::rounded(canonical_nan<float>(value));
  }

  [[gnu::always_inline]] static Shorts upper(Shorts halves) {
    return ByteAsHalf<Format>::upper(halves);
  }
};

/// Computes with the f16s of ByteAsHalf without their scale, and rounds only sums. A sum of
/// elements is a multiple of the smallest subnormal, even where f32 has rounded it. So a subnormal
/// result is exact, and all others are rounded at the same bit of the f32.
template <typename Format>
struct SumRounding {
  static constexpr float kScale = 1;
  static constexpr unsigned kRebias = 127 - 15;

  [[gnu::always_inline]] static Floats rounded(Floats sum) {
    constexpr unsigned kCut = 23 - Format::kMantissa;
    const auto bits = reinterpret_cast<Words>(sum);
    const Words carried = bits + ((1U << (kCut - 1)) - 1) + ((bits >> kCut) & 1U);
    return reinterpret_cast<Floats>(carried & ~((1U << kCut) - 1));
  }

  [[gnu::always_inline]] static Shorts upper(Shorts halves) {
    return ByteAsHalf<Format>::upper(ByteAsHalf<Format>::bounded(halves));
  }
};

/// The bytes of four parts: 0 and 1 have the even elements, 2 and 3 the odd ones.
template <typename Rounding>
[[gnu::always_inline]] inline Shorts bytes_of(const Parts<float, 4>& value) {
  const Shorts even =
      both(Rounding::rounded(value.part[0]), Rounding::rounded(value.part[1]), kOfBoth);
  const Shorts odd =
      both(Rounding::rounded(value.part[2]), Rounding::rounded(value.part[3]), kOfBoth);
  return (Rounding::upper(even) >> 8) | Rounding::upper(odd);
}

#if defined(__AVX512VBMI__)

/// The upper half of the f32 of a code without its sign; the lower half is 0. `rebias` is what f32
/// adds to the exponent.
template <unsigned kExponentBits, unsigned kMantissaBits, Specials kSpecials>
constexpr unsigned upper_half_of(NarrowFormat<kExponentBits, kMantissaBits, kSpecials> /*format*/,
                                 unsigned rebias, unsigned code) {
  constexpr unsigned kOnes = (1U << kExponentBits) - 1;
  const unsigned mantissa = code & ((1U << kMantissaBits) - 1);
  const unsigned exponent = code >> kMantissaBits;
  if (kSpecials == Specials::ieee ? exponent == kOnes : code == 0x7f) {
    return kSpecials == Specials::ieee && mantissa == 0 ? 0x7f80 : 0x7fc0;
  }
  if (exponent != 0) {
    return (exponent + rebias) << 7 | mantissa << (7 - kMantissaBits);
  }
  if (mantissa == 0) {
    return 0;
  }
  unsigned shift = 0; // makes a subnormal's first bit the hidden one
  while ((mantissa << shift >> kMantissaBits) == 0) {
    ++shift;
  }
  const unsigned fraction = (mantissa << shift) & ((1U << kMantissaBits) - 1);
  return (rebias + 1 - shift) << 7 | fraction << (7 - kMantissaBits);
}

/// The two bytes of upper_half_of, by code.
struct alignas(64) UpperHalves {
  std::uint8_t low[128];
  std::uint8_t high[128];
};

template <typename Format, unsigned kRebias>
constexpr UpperHalves kUpperHalves = [] {
  UpperHalves halves = {};
  for (unsigned code = 0; code < 128; ++code) {
    const unsigned half = upper_half_of(Format(), kRebias, code);
    halves.low[code] = static_cast<std::uint8_t>(half);
    halves.high[code] = static_cast<std::uint8_t>(half >> 8);
  }
  return halves;
}();

/// f8 by table lookup, 64 codes at once. Byte interleaving works within each quarter of a vector,
/// so parts 0 and 1 have the even elements of each quarter's first and second half, parts 2 and 3
/// the odd ones.
template <typename Format, typename Rounding>
struct Float8By {
  using Number = float;
  static constexpr unsigned kParts = 4;

  [[gnu::always_inline]] static Parts<float, 4> decode(const std::byte* from) {
    const __m512i codes = load<__m512i>(from);
    const __m512i low = look_up(kUpperHalves<Format, Rounding::kRebias>.low, codes);
    const __m512i unsigned_high = look_up(kUpperHalves<Format, Rounding::kRebias>.high, codes);
    constexpr int kFirstOrBothOthers = 0xf8;
    const __m512i high = _mm512_ternarylogic_epi64(unsigned_high, codes, _mm512_set1_epi8(-0x80),
                                                   kFirstOrBothOthers);
    const Words first = reinterpret_cast<Words>(_mm512_unpacklo_epi8(low, high));
    const Words second = reinterpret_cast<Words>(_mm512_unpackhi_epi8(low, high));
    return {{reinterpret_cast<Floats>(first << 16), reinterpret_cast<Floats>(second << 16),
             reinterpret_cast<Floats>(first & 0xffff0000U),
             reinterpret_cast<Floats>(second & 0xffff0000U)}};
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<float, 4>& value) {
    // Each quarter gets four pairs of bytes of the first part, then four of the second.
    const auto quads = reinterpret_cast<Vector<std::uint64_t>>(bytes_of<Rounding>(value));
    store(to, __builtin_shufflevector(quads, quads, 0, 4, 1, 5, 2, 6, 3, 7));
  }

 private:
  [[gnu::always_inline]] static __m512i look_up(const std::uint8_t* table, __m512i codes) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), codes, _mm512_load_si512(table + 64));
  }
};

#else

/// f8 through f16, which has all of its values. Parts 0 and 1 have the even elements, 2 and 3 the
/// odd ones.
template <typename Format, typename Rounding>
struct Float8By {
  using Number = float;
  static constexpr unsigned kParts = 4;

  [[gnu::always_inline]] static Parts<float, 4> decode(const std::byte* from) {
    const Shorts pair = load<Shorts>(from);
    Parts<float, 4> value;
    widen(ByteAsHalf<Format>::convert(pair << 8), &value.part[0]);
    widen(ByteAsHalf<Format>::convert(pair & 0xff00), &value.part[2]);
    return value;
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<float, 4>& value) {
    store(to, bytes_of<Rounding>(value));
  }

 private:
  [[gnu::always_inline]] static void widen(Shorts halves, Floats* parts) {
    using Indices = std::make_index_sequence<kVectorBytes / 4>;
    parts[0] = floats_of(slice<0>(halves, Indices())) * Rounding::kScale;
    parts[1] = floats_of(slice<kVectorBytes / 4>(halves, Indices())) * Rounding::kScale;
  }

  /// Half of the lanes. Not through memory: gcc would leave the value there.
  template <std::size_t kFirst, std::size_t... kIndices>
  [[gnu::always_inline]] static HalfVector<std::uint16_t>
  slice(Shorts lanes, std::index_sequence<kIndices...> /*of the result*/) {
    return __builtin_shufflevector(lanes, lanes, (kFirst + kIndices)...);
  }
};

#endif

template <typename Format, typename Rounding>
constexpr bool takes_any_nan<Float8By<Format, Rounding>> = true;

template <typename Format>
using Float8 = Float8By<Format, AnyRounding<Format>>;
template <typename Format>
using Float8Sum = Float8By<Format, SumRounding<Format>>;

#else

/// A narrow format by bit arithmetic. Part k has the k-th element of each 32-bit word.
template <typename Format>
struct Narrow {
  using Number = float;
  static constexpr unsigned kParts = 32 / Format::kBits;

  [[gnu::always_inline]] static Parts<float, kParts> decode(const std::byte* from) {
    const Ints word = load<Ints>(from);
    Parts<float, kParts> value;
    for (unsigned k = 0; k < kParts; ++k) {
      value.part[k] = Format::decode(word >> (k * Format::kBits));
    }
    return value;
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<float, kParts>& value) {
    Ints word = {};
    for (unsigned k = 0; k < kParts; ++k) {
      word |= Format::encode(value.part[k]) << (k * Format::kBits);
    }
    store(to, word);
  }
};

using Float16 = Narrow<NarrowFormat<5, 10, Specials::ieee>>;
template <typename Format>
using Float8 = Narrow<Format>;
template <typename Format>
using Float8Sum = Narrow<Format>;

#endif

} // namespace

} // namespace weir::op
