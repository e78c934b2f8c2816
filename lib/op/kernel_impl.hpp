// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The fast kernels, written once. Each kernel_<level>.cpp includes this file under its own
/// compiler flags; the vector width and the few conversions done in hardware follow from those.
///
/// Everything lies in an unnamed namespace, and no function of the standard library is called: an
/// inline function that two levels share by name would be merged by the linker, and the baseline
/// might get the copy compiled for AVX-512.

#include "op/kernel_table.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): the file's comment says why

#if defined(__AVX512BW__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

/// Vector registers of accumulators that one pass over the inputs fills.
constexpr unsigned kAccumulators = 8;

template <typename T, std::size_t kBytes>
struct VectorOf {
  using type __attribute__((vector_size(kBytes))) = T;
};

template <typename T>
using Vector = typename VectorOf<T, kVectorBytes>::type;

template <typename T>
using HalfVector = typename VectorOf<T, kVectorBytes / 2>::type;

using Floats = Vector<float>;
using Ints = Vector<std::int32_t>;
using Words = Vector<std::uint32_t>;
using Shorts = Vector<std::uint16_t>;

template <typename V>
[[gnu::always_inline]] inline V load(const std::byte* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <typename V>
[[gnu::always_inline]] inline void store(std::byte* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

// ---- Folds: how one more value joins the accumulator, and what is done once at the end. ----

/// Every NaN becomes the one positive quiet NaN without payload. Which of two NaNs an addition
/// keeps depends on the order of its operands, and that the compiler may swap.
template <typename T>
[[gnu::always_inline]] inline Vector<T> canonical_nan(Vector<T> value) {
  if constexpr (std::is_floating_point_v<T>) {
    const T nan = std::is_same_v<T, float> ? static_cast<T>(__builtin_nanf("")) : __builtin_nan("");
    return value != value ? Vector<T>{} + nan : value;
  } else {
    return value;
  }
}

/// `right < left ? right : left`, and its mirror image: minps and maxps to the letter, NaN and
/// zeros included.
template <typename T>
[[gnu::always_inline]] inline Vector<T> lesser(Vector<T> left, Vector<T> right) {
  return right < left ? right : left;
}

template <typename T>
[[gnu::always_inline]] inline Vector<T> greater(Vector<T> left, Vector<T> right) {
  return right > left ? right : left;
}

#if defined(__AVX512BW__)
// With mask registers the compilers compare and move instead. The forms with a mask of ones make no
// use of _mm512_undefined_*, of which gcc 12 warns (its PR 105593).
constexpr __mmask16 kAllLanes = 0xffff;

template <>
[[gnu::always_inline]] inline Vector<float> lesser<float>(Vector<float> left, Vector<float> right) {
  return _mm512_maskz_min_ps(kAllLanes, right, left);
}

template <>
[[gnu::always_inline]] inline Vector<float> greater<float>(Vector<float> left,
                                                           Vector<float> right) {
  return _mm512_maskz_max_ps(kAllLanes, right, left);
}

template <>
[[gnu::always_inline]] inline Vector<double> lesser<double>(Vector<double> left,
                                                            Vector<double> right) {
  return _mm512_maskz_min_pd(0xff, right, left);
}

template <>
[[gnu::always_inline]] inline Vector<double> greater<double>(Vector<double> left,
                                                             Vector<double> right) {
  return _mm512_maskz_max_pd(0xff, right, left);
}
#endif

template <typename T>
struct Sum {
  [[gnu::always_inline]] static Vector<T> join(Vector<T> left, Vector<T> right) {
    return left + right;
  }
};

template <typename T>
struct Product {
  [[gnu::always_inline]] static Vector<T> join(Vector<T> left, Vector<T> right) {
    return left * right;
  }
};

/// A NaN on the left stays, for nothing compares with it; one on the right is taken by name.
template <typename T>
[[gnu::always_inline]] inline Vector<T> unless_nan(Vector<T> right, Vector<T> chosen) {
  if constexpr (std::is_floating_point_v<T>) {
    return right != right ? right : chosen;
  } else {
    return chosen;
  }
}

template <typename T>
struct Minimum {
  [[gnu::always_inline]] static Vector<T> join(Vector<T> left, Vector<T> right) {
    return unless_nan<T>(right, lesser<T>(left, right));
  }
};

template <typename T>
struct Maximum {
  [[gnu::always_inline]] static Vector<T> join(Vector<T> left, Vector<T> right) {
    return unless_nan<T>(right, greater<T>(left, right));
  }
};

template <typename T>
struct And {
  [[gnu::always_inline]] static Vector<T> join(Vector<T> left, Vector<T> right) {
    return left & right;
  }
};

template <typename T>
struct Or {
  [[gnu::always_inline]] static Vector<T> join(Vector<T> left, Vector<T> right) {
    return left | right;
  }
};

template <typename T>
struct Xor {
  [[gnu::always_inline]] static Vector<T> join(Vector<T> left, Vector<T> right) {
    return left ^ right;
  }
};

// ---- Codecs: kVectorBytes of payload to `kParts` vectors of what is computed in, and back. The
// elements may lie in the parts in any order, as long as decode and encode agree. ----

template <typename T, unsigned kCount>
struct Parts {
  Vector<T> part[kCount];
};

/// Elements that are computed in as they are.
template <typename T>
struct Plain {
  using Number = T;
  static constexpr unsigned kParts = 1;

  [[gnu::always_inline]] static Parts<T, 1> decode(const std::byte* from) {
    return {{load<Vector<T>>(from)}};
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<T, 1>& value) {
    store(to, value.part[0]);
  }
};

/// Bytes of which only products are wanted, two to a 16-bit lane: what stands above a lane's low
/// byte has no influence on it. There is no multiplication of bytes.
struct BytePairs {
  using Number = std::uint16_t;
  static constexpr unsigned kParts = 2;

  [[gnu::always_inline]] static Parts<std::uint16_t, 2> decode(const std::byte* from) {
    const Shorts pair = load<Shorts>(from);
    return {{pair, pair >> 8}};
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<std::uint16_t, 2>& value) {
    store(to, (value.part[0] & 0xff) | (value.part[1] << 8));
  }
};

/// The parts of InOrder.
enum OrderPart : std::uint8_t { order_key, order_code, order_magnitude, order_parts };

/// The codes of a narrow float, signed integers of its width, of which only the least or the
/// greatest is wanted: that needs no conversion. Keys are in the order of the values, with one key
/// for both zeros; the greatest magnitude tells whether there was a NaN.
template <typename Code, std::int32_t kLargest, std::int32_t kNan>
struct InOrder {
  using Number = Code;
  static constexpr unsigned kParts = order_parts;
  static constexpr Code kMagnitudeMask = static_cast<Code>((1 << (8 * sizeof(Code) - 1)) - 1);

  [[gnu::always_inline]] static Parts<Code, kParts> decode(const std::byte* from) {
    const auto code = load<Vector<Code>>(from);
    const Vector<Code> magnitude = code & kMagnitudeMask;
    return {{code < 0 ? -magnitude : magnitude, code, magnitude}};
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<Code, kParts>& value) {
    const Vector<Code> nan = Vector<Code>{} + static_cast<Code>(kNan);
    store(to,
          value.part[order_magnitude] > static_cast<Code>(kLargest) ? nan : value.part[order_code]);
  }
};

template <typename Codec>
constexpr bool is_in_order = false;

template <typename Code, std::int32_t kLargest, std::int32_t kNan>
constexpr bool is_in_order<InOrder<Code, kLargest, kNan>> = true;

using Float16InOrder = InOrder<std::int16_t, 0x7c00, 0x7e00>;
using Bfloat16InOrder = InOrder<std::int16_t, 0x7f80, 0x7fc0>;
using E4m3InOrder = InOrder<std::int8_t, 0x7e, 0x7f>;
using E5m2InOrder = InOrder<std::int8_t, 0x7c, 0x7e>;

/// The upper half of an f32: part 0 holds the even elements, part 1 the odd ones, so that nothing
/// is shuffled.
struct Bfloat16 {
  using Number = float;
  static constexpr unsigned kParts = 2;

  [[gnu::always_inline]] static Parts<float, 2> decode(const std::byte* from) {
    const Words pair = load<Words>(from);
    return {{reinterpret_cast<Floats>(pair << 16), reinterpret_cast<Floats>(pair & 0xffff0000U)}};
  }

  [[gnu::always_inline]] static void encode(std::byte* to, const Parts<float, 2>& value) {
    store(to, (rounded(value.part[0]) >> 16) | (rounded(value.part[1]) & 0xffff0000U));
  }

 private:
  /// To nearest even at bit 16. The carry takes the largest values to infinity; a canonical NaN
  /// stays one.
  [[gnu::always_inline]] static Words rounded(Floats value) {
    const auto bits = reinterpret_cast<Words>(value);
    return bits + 0x7fffU + ((bits >> 16) & 1U);
  }
};

/// What the all-ones exponent means: as in IEEE 754, or (OCP 8-bit formats, "FN") finite but for
/// the all-ones code.
enum class Specials : std::uint8_t { ieee, nan_only };

/// A binary floating-point format narrower than f32, one element in the low bits of each 32-bit
/// lane. Lanes are signed, since SSE and AVX2 compare no others; no value here reaches the sign
/// bit.
template <unsigned kExponentBits, unsigned kMantissaBits, Specials kSpecials>
struct NarrowFormat {
  static constexpr unsigned kBits = 1 + kExponentBits + kMantissaBits;

  [[gnu::always_inline]] static Floats decode(Ints code) {
    const Ints magnitude = (code & kMagnitudeMask) << kShift;
    const Ints normal = magnitude + (kRebias << 23);
    const Ints scaled = magnitude + ((kRebias + 1) << 23); // a subnormal and the smallest normal
    const Ints subnormal =
        reinterpret_cast<Ints>(reinterpret_cast<Floats>(scaled) - as_float((kRebias + 1) << 23));
    const Ints finite = magnitude < (1 << 23) ? subnormal : normal;
    const Ints bits = magnitude >= kFirstSpecial ? magnitude | kFloatInfinity : finite;
    return reinterpret_cast<Floats>(bits | ((code & kSignBit) << (32 - kBits)));
  }

  /// Rounds to nearest even; what rounds past the largest finite value becomes infinity, or NaN
  /// where there is none. A NaN must be canonical.
  [[gnu::always_inline]] static Ints encode(Floats value) {
    const auto bits = reinterpret_cast<Ints>(value);
    const Ints magnitude = bits & 0x7fffffff;
    const Ints normal =
        (magnitude - (kRebias << 23) + ((1 << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1)) >>
        kShift;
    // Adding a number whose last bit is worth the format's smallest subnormal makes the FPU round
    // there.
    const Ints subnormal =
        reinterpret_cast<Ints>(reinterpret_cast<Floats>(magnitude) + as_float(kSubnormalUnit)) -
        kSubnormalUnit;
    const Ints rounded = magnitude < ((kRebias + 1) << 23) ? subnormal : normal;
    const Ints bounded = rounded > kOverflowCode ? Ints{} + kOverflowCode : rounded;
    const Ints code = magnitude > kFloatInfinity ? Ints{} + kNanCode : bounded;
    const Ints sign = (bits >> (32 - kBits)) & kSignBit;
    return kSpecials == Specials::nan_only ? (code == kNanCode ? code : code | sign) : code | sign;
  }

 private:
  static constexpr std::int32_t kSignBit = 1 << (kBits - 1);
  static constexpr std::int32_t kMagnitudeMask = kSignBit - 1;
  static constexpr unsigned kShift = 23 - kMantissaBits;
  static constexpr std::int32_t kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::int32_t kRebias = 127 - kBias;
  static constexpr std::int32_t kFloatInfinity = 0x7f800000;
  static constexpr std::int32_t kSubnormalUnit =
      (127 + 1 - kBias - static_cast<std::int32_t>(kMantissaBits) + 23) << 23;
  static constexpr std::int32_t kInfinityCode = ((1 << kExponentBits) - 1) << kMantissaBits;
  static constexpr std::int32_t kFirstSpecial =
      (kSpecials == Specials::ieee ? kInfinityCode : kMagnitudeMask) << kShift;
  static constexpr std::int32_t kNanCode =
      kSpecials == Specials::ieee ? kInfinityCode | (1 << (kMantissaBits - 1)) : kMagnitudeMask;
  static constexpr std::int32_t kOverflowCode =
      kSpecials == Specials::ieee ? kInfinityCode : kNanCode;

  static constexpr float as_float(std::int32_t bits) { return __builtin_bit_cast(float, bits); }
};

using E4m3 = NarrowFormat<4, 3, Specials::nan_only>;
using E5m2 = NarrowFormat<5, 2, Specials::ieee>;

#if defined(__F16C__)

/// Hides from clang 14 where a value comes from: it would compare the f16s instead, for which there
/// is no instruction.
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

/// f16 by the CPU's own conversions.
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

/// `value`, not negative, rounded to nearest even at the last bit of a format with that many
/// mantissa bits and that smallest normal exponent (of f32, biased): adding a number whose last bit
/// is worth as much makes the FPU round there.
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

/// How an 8-bit element in the upper byte of each 16-bit lane becomes an f16, what that must be
/// multiplied by, and the way back: `rounded` gives an f32 that is exact in f16, `upper` the code
/// of that f16 in the upper byte.
template <typename Format>
struct ByteAsHalf;

/// The same exponent: an f16 cut short. What rounds to 65536 is infinity there too.
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

/// One exponent bit less: moved down by one, read as 2^-8 of its value. 480 would be the code of
/// NaN.
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

/// Four parts to bytes: 0 and 1 are the even elements, 2 and 3 the odd ones. The sources say where
/// each of a pair's f16 comes from.
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

/// The upper half of the f32 that a code without its sign stands for; the lower is 0.
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
  unsigned shift = 0; // that makes the subnormal's first bit the hidden one
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

/// f8 looked up, 64 codes at once. What interleaves bytes does so in each quarter of a vector by
/// itself, so parts 0 and 1 hold the even elements of each quarter's first and second half, parts 2
/// and 3 the odd ones.
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

  /// Of each quarter four f16 of the first part, then four of the second.
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

/// f8 by way of f16, which holds each of its values: parts 0 and 1 are the even elements, 2 and 3
/// the odd ones.
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

  /// Half of the lanes. (Through memory, gcc would leave it there.)
  template <std::size_t kFirst, std::size_t... kIndices>
  [[gnu::always_inline]] static HalfVector<std::uint16_t>
  slice(Shorts lanes, std::index_sequence<kIndices...> /*of the result*/) {
    return __builtin_shufflevector(lanes, lanes, (kFirst + kIndices)...);
  }
};

#endif

#else

/// A narrow format by bit arithmetic: part k holds the k-th element of each 32-bit word.
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

// ---- The walk over a payload. ----

template <typename Codec>
using PartsOf = Parts<typename Codec::Number, Codec::kParts>;

/// Of equal keys the left one stays.
template <typename Codec, template <typename> class Fold>
[[gnu::always_inline]] inline void join_in_order(PartsOf<Codec>& left,
                                                 const PartsOf<Codec>& right) {
  using Code = typename Codec::Number;
  const Vector<Code> key = Fold<Code>::join(left.part[order_key], right.part[order_key]);
  left.part[order_code] =
      key != left.part[order_key] ? right.part[order_code] : left.part[order_code];
  left.part[order_key] = key;
  left.part[order_magnitude] =
      greater<Code>(left.part[order_magnitude], right.part[order_magnitude]);
}

template <typename Codec, template <typename> class Fold>
[[gnu::always_inline]] inline void join(PartsOf<Codec>& left, const PartsOf<Codec>& right) {
  if constexpr (is_in_order<Codec>) {
    return join_in_order<Codec, Fold>(left, right);
  }
  for (unsigned i = 0; i < Codec::kParts; ++i) {
    left.part[i] = Fold<typename Codec::Number>::join(left.part[i], right.part[i]);
  }
}

template <typename Codec>
[[gnu::always_inline]] inline void finish(std::byte* to, PartsOf<Codec>& value) {
  for (auto& part : value.part) {
    part = canonical_nan<typename Codec::Number>(part);
  }
  Codec::encode(to, value);
}

/// Folds kColumns vectors of payload, starting at byte `at`: the inputs pass by once, the sums stay
/// in registers, and `out` is written once.
template <typename Codec, template <typename> class Fold, unsigned kColumns>
[[gnu::always_inline]] inline void fold_columns(std::byte* out, const std::byte* const* inputs,
                                                unsigned count, std::size_t at) {
  PartsOf<Codec> sums[kColumns];
  for (unsigned column = 0; column < kColumns; ++column) {
    sums[column] = Codec::decode(inputs[0] + at + column * kVectorBytes);
  }
  for (unsigned i = 1; i < count; ++i) {
    for (unsigned column = 0; column < kColumns; ++column) {
      join<Codec, Fold>(sums[column], Codec::decode(inputs[i] + at + column * kVectorBytes));
    }
  }
  for (unsigned column = 0; column < kColumns; ++column) {
    finish<Codec>(out + at + column * kVectorBytes, sums[column]);
  }
}

/// Folds blocks of kColumns vectors while they fit, then of half as many; returns the first byte
/// not folded, which is less than a vector from the end.
template <typename Codec, template <typename> class Fold, unsigned kColumns>
[[gnu::always_inline]] inline std::size_t
fold_blocks(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t at,
            std::size_t bytes) {
  constexpr std::size_t kBlockBytes = kColumns * kVectorBytes;
  for (; bytes - at >= kBlockBytes; at += kBlockBytes) {
    fold_columns<Codec, Fold, kColumns>(out, inputs, count, at);
  }
  if constexpr (kColumns > 1) {
    return fold_blocks<Codec, Fold, kColumns / 2>(out, inputs, count, at, bytes);
  }
  return at;
}

template <typename Codec>
[[gnu::always_inline]] inline PartsOf<Codec> decode_short(const std::byte* from,
                                                          std::size_t bytes) {
  std::byte padded[kVectorBytes] = {};
  __builtin_memcpy(padded, from, bytes);
  return Codec::decode(padded);
}

/// Folds a payload shorter than one vector, so that no byte outside it is touched.
template <typename Codec, template <typename> class Fold>
void fold_short(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes) {
  PartsOf<Codec> sum = decode_short<Codec>(inputs[0], bytes);
  for (unsigned i = 1; i < count; ++i) {
    join<Codec, Fold>(sum, decode_short<Codec>(inputs[i], bytes));
  }
  std::byte padded[kVectorBytes];
  finish<Codec>(padded, sum);
  __builtin_memcpy(out, padded, bytes);
}

/// The ReduceKernel. The end of a payload that fills no vector is folded as the payload's last
/// whole vector: some elements are computed twice, alike.
template <typename Codec, template <typename> class Fold>
void reduce(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes) {
  if (bytes < kVectorBytes) {
    fold_short<Codec, Fold>(out, inputs, count, bytes);
    return;
  }
  constexpr unsigned kColumns =
      is_in_order<Codec> ? 2 : kAccumulators / Codec::kParts; // 1, 2, 4, 8
  if (fold_blocks<Codec, Fold, kColumns>(out, inputs, count, 0, bytes) != bytes) {
    fold_columns<Codec, Fold, 1>(out, inputs, count, bytes - kVectorBytes);
  }
}

// ---- Conversions, one element in each 32-bit lane. ----

constexpr std::size_t kLanes = kVectorBytes / sizeof(float);

/// The codes of kLanes elements, as they lie in memory.
template <typename Code>
using Codes = typename VectorOf<Code, kLanes * sizeof(Code)>::type;

template <typename Format, typename Code>
struct ToF32 {
  static constexpr std::size_t kFrom = sizeof(Code);
  static constexpr std::size_t kTo = sizeof(float);

  [[gnu::always_inline]] static void convert(std::byte* to, const std::byte* from) {
    store(to, Format::decode(__builtin_convertvector(load<Codes<Code>>(from), Ints)));
  }
};

template <typename Format, typename Code>
struct FromF32 {
  static constexpr std::size_t kFrom = sizeof(float);
  static constexpr std::size_t kTo = sizeof(Code);

  [[gnu::always_inline]] static void convert(std::byte* to, const std::byte* from) {
    const Floats value = canonical_nan<float>(load<Floats>(from));
    store(to, __builtin_convertvector(Format::encode(value), Codes<Code>));
  }
};

/// The ConvertKernel. The lanes that the last elements do not fill go through a buffer.
template <typename Conversion>
void convert(std::byte* out, const std::byte* in, std::size_t elements) {
  std::size_t at = 0;
  for (; at + kLanes <= elements; at += kLanes) {
    Conversion::convert(out + at * Conversion::kTo, in + at * Conversion::kFrom);
  }
  std::byte padded[kVectorBytes] = {};
  std::byte converted[kVectorBytes];
  __builtin_memcpy(padded, in + at * Conversion::kFrom, (elements - at) * Conversion::kFrom);
  Conversion::convert(converted, padded);
  __builtin_memcpy(out + at * Conversion::kTo, converted, (elements - at) * Conversion::kTo);
}

// ---- The table. ----

constexpr ReduceKernel& entry(KernelTable& table, DataType type, Operation operation) {
  return table.of[static_cast<std::size_t>(type)][static_cast<std::size_t>(operation)];
}

template <typename Codec>
constexpr void add_order(KernelTable& table, DataType type) {
  entry(table, type, Operation::min) = reduce<Codec, Minimum>;
  entry(table, type, Operation::max) = reduce<Codec, Maximum>;
}

/// Sums and products take `Arithmetic`, minima and maxima `Order`.
template <typename Arithmetic, typename Order = Arithmetic>
constexpr void add_float(KernelTable& table, DataType type) {
  entry(table, type, Operation::sum) = reduce<Arithmetic, Sum>;
  entry(table, type, Operation::product) = reduce<Arithmetic, Product>;
  add_order<Order>(table, type);
}

/// Sums and products of signed integers are those of unsigned ones, whose overflow is defined.
template <typename Integer>
constexpr void add_integer(KernelTable& table, DataType type) {
  using Bits = Plain<std::uint64_t>; // bitwise operations know no element
  using Unsigned = Plain<std::make_unsigned_t<Integer>>;
  using Factors = std::conditional_t<sizeof(Integer) == 1, BytePairs, Unsigned>;
  entry(table, type, Operation::sum) = reduce<Unsigned, Sum>;
  entry(table, type, Operation::product) = reduce<Factors, Product>;
  add_order<Plain<Integer>>(table, type);
  entry(table, type, Operation::bitwise_and) = reduce<Bits, And>;
  entry(table, type, Operation::bitwise_or) = reduce<Bits, Or>;
  entry(table, type, Operation::bitwise_xor) = reduce<Bits, Xor>;
}

template <typename Format, typename Code>
constexpr void add_conversions(KernelTable& table, DataType type) {
  table.conversions[static_cast<std::size_t>(type)] = {convert<ToF32<Format, Code>>,
                                                       convert<FromF32<Format, Code>>};
}

constexpr KernelTable make_kernel_table() {
  KernelTable table = {};
  add_float<Plain<float>>(table, DataType::f32);
  add_float<Plain<double>>(table, DataType::f64);
  add_float<Float16, Float16InOrder>(table, DataType::f16);
  add_float<Bfloat16, Bfloat16InOrder>(table, DataType::bf16);
  add_float<Float8<E4m3>, E4m3InOrder>(table, DataType::f8e4m3);
  add_float<Float8<E5m2>, E5m2InOrder>(table, DataType::f8e5m2);
  add_conversions<NarrowFormat<5, 10, Specials::ieee>, std::uint16_t>(table, DataType::f16);
  add_conversions<NarrowFormat<8, 7, Specials::ieee>, std::uint16_t>(table, DataType::bf16);
  add_conversions<E4m3, std::uint8_t>(table, DataType::f8e4m3);
  add_conversions<E5m2, std::uint8_t>(table, DataType::f8e5m2);
  add_integer<std::int8_t>(table, DataType::i8);
  add_integer<std::uint8_t>(table, DataType::u8);
  add_integer<std::int16_t>(table, DataType::i16);
  add_integer<std::uint16_t>(table, DataType::u16);
  add_integer<std::int32_t>(table, DataType::i32);
  add_integer<std::uint32_t>(table, DataType::u32);
  add_integer<std::int64_t>(table, DataType::i64);
  add_integer<std::uint64_t>(table, DataType::u64);
  return table;
}

} // namespace

} // namespace weir::op
