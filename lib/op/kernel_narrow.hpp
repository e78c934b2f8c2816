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

/// f16 by the CPU's conversions.
struct Float16 {
  using Number = float;
  static constexpr unsigned kParts = 2;

  [[gnu::always_inline]] static Parts<float, 2> decode(const std::byte* from) {
    return {{floats_of(load<HalfVector<std::uint16_t>>(from)),
             floats_of(load<HalfVector<std::uint16_t>>(from + kVectorBytes / 2))}};
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<float, 2>& value) {
    store(to, halves_of(value.part[0]));
    store(to + kVectorBytes / 2, halves_of(value.part[1]));
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
/// be multiplied by the given scale.
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
};

/// E4M3 has one exponent bit less: its code moved down by one bit is 2^-8 of its value in f16. The
/// code of 480 would be NaN.
template <>
struct ByteAsHalf<E4m3> {
  static constexpr float kScale = 256;

  [[gnu::always_inline]] static Shorts convert(Shorts upper) {
    const Shorts magnitude = upper & 0x7f00;
    const Shorts nan = reinterpret_cast<Shorts>(magnitude == 0x7f00) & 0x7fff;
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
};

/// Four parts to bytes: 0 and 1 have the even elements, 2 and 3 the odd ones. The sources tell
/// where each of a pair's f16 comes from.
template <typename Format, std::size_t... kSources>
[[gnu::always_inline]] inline void encode_bytes(std::byte* to, const Parts<float, 4>& value,
                                                std::index_sequence<kSources...> /*of a pair*/) {
  const auto joined = [](Floats first, Floats second) __attribute__((always_inline)) {
    return __builtin_shufflevector(halves_of(ByteAsHalf<Format>::rounded(first)),
                                   halves_of(ByteAsHalf<Format>::rounded(second)), kSources...);
  };
  const Shorts even = joined(value.part[0], value.part[1]);
  const Shorts odd = joined(value.part[2], value.part[3]);
  store(to, (ByteAsHalf<Format>::upper(even) >> 8) | ByteAsHalf<Format>::upper(odd));
}

#if defined(__AVX512VBMI__)

/// The upper half of the f32 of a code without its sign; the lower half is 0.
template <unsigned kExponentBits, unsigned kMantissaBits, Specials kSpecials>
constexpr unsigned upper_half_of(unsigned code) {
  constexpr unsigned kOnes = (1U << kExponentBits) - 1;
  constexpr unsigned kRebias = 127 - ((1U << (kExponentBits - 1)) - 1);
  const unsigned mantissa = code & ((1U << kMantissaBits) - 1);
  const unsigned exponent = code >> kMantissaBits;
  if (kSpecials == Specials::ieee ? exponent == kOnes : code == 0x7f) {
    return kSpecials == Specials::ieee && mantissa == 0 ? 0x7f80 : 0x7fc0;
  }
  if (exponent != 0) {
    return (exponent + kRebias) << 7 | mantissa << (7 - kMantissaBits);
  }
  if (mantissa == 0) {
    return 0;
  }
  unsigned shift = 0; // makes a subnormal's first bit the hidden one
  while ((mantissa << shift >> kMantissaBits) == 0) {
    ++shift;
  }
  const unsigned fraction = (mantissa << shift) & ((1U << kMantissaBits) - 1);
  return (kRebias + 1 - shift) << 7 | fraction << (7 - kMantissaBits);
}

/// The two bytes of upper_half_of, by code.
struct alignas(64) UpperHalves {
  std::uint8_t low[128];
  std::uint8_t high[128];
};

template <typename Format>
constexpr UpperHalves kUpperHalves = {};

template <unsigned kExponentBits, unsigned kMantissaBits, Specials kSpecials>
constexpr UpperHalves kUpperHalves<NarrowFormat<kExponentBits, kMantissaBits, kSpecials>> = [] {
  UpperHalves halves = {};
  for (unsigned code = 0; code < 128; ++code) {
    const unsigned half = upper_half_of<kExponentBits, kMantissaBits, kSpecials>(code);
    halves.low[code] = static_cast<std::uint8_t>(half);
    halves.high[code] = static_cast<std::uint8_t>(half >> 8);
  }
  return halves;
}();

/// f8 by table lookup, 64 codes at once. Byte interleaving works within each quarter of a vector,
/// so parts 0 and 1 have the even elements of each quarter's first and second half, parts 2 and 3
/// the odd ones.
template <typename Format>
struct TabledFloat8 {
  using Number = float;
  static constexpr unsigned kParts = 4;

  [[gnu::always_inline]] static Parts<float, 4> decode(const std::byte* from) {
    const __m512i codes = load<__m512i>(from);
    const __m512i low = look_up(kUpperHalves<Format>.low, codes);
    const __m512i unsigned_high = look_up(kUpperHalves<Format>.high, codes);
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
    encode_bytes<Format>(to, value, sources(std::make_index_sequence<kVectorBytes / 2>()));
  }

 private:
  [[gnu::always_inline]] static __m512i look_up(const std::uint8_t* table, __m512i codes) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), codes, _mm512_load_si512(table + 64));
  }

  /// From each quarter: four f16 of the first part, then four of the second.
  static constexpr std::size_t source_of(std::size_t lane) {
    const std::size_t within = lane / 8 * 4 + lane % 4;
    return lane % 8 < 4 ? within : kVectorBytes / 4 + within;
  }

  template <std::size_t... kLanes>
  static constexpr std::index_sequence<source_of(kLanes)...>
  sources(std::index_sequence<kLanes...> /*of the result*/) {
    return {};
  }
};

template <typename Format>
using Float8 = TabledFloat8<Format>;

#else

/// f8 through f16, which has all of its values. Parts 0 and 1 have the even elements, 2 and 3 the
/// odd ones.
template <typename Format>
struct Float8 {
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
    encode_bytes<Format>(to, value, std::make_index_sequence<kVectorBytes / 2>());
  }

 private:
  [[gnu::always_inline]] static void widen(Shorts halves, Floats* parts) {
    using Indices = std::make_index_sequence<kVectorBytes / 4>;
    parts[0] = floats_of(slice<0>(halves, Indices())) * ByteAsHalf<Format>::kScale;
    parts[1] = floats_of(slice<kVectorBytes / 4>(halves, Indices())) * ByteAsHalf<Format>::kScale;
  }

  /// Half of the lanes. Not through memory: gcc would leave the value there.
  template <std::size_t kFirst, std::size_t... kIndices>
  [[gnu::always_inline]] static HalfVector<std::uint16_t>
  slice(Shorts lanes, std::index_sequence<kIndices...> /*of the result*/) {
    return __builtin_shufflevector(lanes, lanes, (kFirst + kIndices)...);
  }
};

#endif

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

#endif

} // namespace

} // namespace weir::op
