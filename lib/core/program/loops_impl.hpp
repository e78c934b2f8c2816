// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The loops of fold programs, written once. Each loops_<level>.cpp includes this file with its own
/// compiler flags, as the kernels' files do (op/kernel_impl.hpp), and for the same reason
/// everything is in an unnamed namespace, and no function of the standard library is called.
///
/// A loop runs over a tile's lanes, rounded up to whole vectors: registers have room for them, and
/// nobody reads them.

#include "program/loops.hpp"

#include <cstddef>
#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define WEIR_EACH_LANE _Pragma("clang loop vectorize(assume_safety)")
#else
#define WEIR_EACH_LANE _Pragma("GCC ivdep") // operands are one register, or do not overlap
#endif

namespace weir::program {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): the file's comment says why

using std::byte;
using std::int32_t;
using std::size_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

constexpr unsigned kVectorBytes = 64;

template <typename To, typename From>
[[gnu::always_inline]] inline To bits_as(From from) {
  return __builtin_bit_cast(To, from);
}

template <size_t kBytes>
struct IntegerOf;

template <>
struct IntegerOf<2> {
  using Signed = std::int16_t;
  using Unsigned = std::uint16_t;
};

template <>
struct IntegerOf<4> {
  using Signed = int32_t;
  using Unsigned = uint32_t;
};

template <>
struct IntegerOf<8> {
  using Signed = std::int64_t;
  using Unsigned = uint64_t;
};

template <typename T>
using Signed = typename IntegerOf<sizeof(T)>::Signed;
template <typename T>
using Unsigned = typename IntegerOf<sizeof(T)>::Unsigned;

template <typename T>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<float> = true;
template <>
constexpr bool kIsFloat<double> = true;

template <typename T>
constexpr bool kIsSigned = static_cast<T>(-1) < static_cast<T>(0);

template <typename T>
struct Limits {
  static constexpr T lowest =
      kIsSigned<T> ? static_cast<T>(Unsigned<T>{1} << (sizeof(T) * 8 - 1)) : T{0};
  static constexpr T highest = static_cast<T>(~static_cast<Unsigned<T>>(lowest));
};

/// An unaligned element of a payload.
template <typename T>
[[gnu::always_inline]] inline T element(const byte* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// ------------------------------------------------------------------------------- narrow floats

/// A format of at most 16 bits, whose values f32 has.
struct Narrow {
  int mantissa = 0;
  int bias = 0;
  uint32_t sign = 0;     // its bit
  uint32_t nan = 0;      // the code of what is no number
  uint32_t infinite = 0; // that of infinity
  uint32_t most = 0;     // the bits in f32 of the largest magnitude that is looked at
  uint32_t special = 0;  // magnitudes from here on are infinite, or no number
};

// Past the largest number of a format of 8 bits or fewer, that one stays. f16 has infinity there.
constexpr Narrow kE4m3{3, 7, 0x80, 0x7f, 0x7f, 0x43e00000, 0x7f};
constexpr Narrow kE5m2{2, 15, 0x80, 0x7e, 0x7c, 0x47600000, 0x7c};
constexpr Narrow kE2m3{3, 1, 0x20, 0, 0x1f, 0x40f00000, 0x20};
constexpr Narrow kE3m2{2, 3, 0x20, 0, 0x1f, 0x41e00000, 0x20};
constexpr Narrow kE2m1{1, 1, 0x08, 0, 0x07, 0x40c00000, 0x08};
constexpr Narrow kF16{10, 15, 0x8000, 0x7e00, 0x7c00, 0x47800000, 0x7c00};

constexpr uint32_t kNanF32 = 0x7fc00000;
constexpr uint32_t kInfinityF32 = 0x7f800000;

/// Below the first power of two, the last bits are those of a number above it less that.
template <Narrow kFormat>
[[gnu::always_inline]] inline float decode(uint32_t code) {
  constexpr int shift = 23 - kFormat.mantissa;
  constexpr uint32_t first = static_cast<uint32_t>(128 - kFormat.bias) << 23;
  const uint32_t magnitude = (code & (kFormat.sign - 1)) << shift;
  const uint32_t small =
      bits_as<uint32_t>(bits_as<float>(magnitude + first) - bits_as<float>(first));
  uint32_t bits = magnitude < (1U << 23) ? small : magnitude + first - (1U << 23);
  const uint32_t special =
      (code & (kFormat.sign - 1)) == kFormat.infinite && kFormat.infinite != kFormat.nan
          ? kInfinityF32
          : kNanF32;
  bits = (code & (kFormat.sign - 1)) >= kFormat.special ? special : bits;
  return bits_as<float>(bits | ((code & kFormat.sign) != 0 ? 0x80000000U : 0U));
}

/// To nearest even. A magnitude and a power of two with its last place at the format's are added.
template <Narrow kFormat>
[[gnu::always_inline]] inline uint32_t encode(float value) {
  constexpr uint32_t first = static_cast<uint32_t>(128 - kFormat.bias) << 23;
  const uint32_t bits = bits_as<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t most = magnitude < kFormat.most ? magnitude : kFormat.most;
  const uint32_t binade = most & kInfinityF32;
  const uint32_t exponent = binade < first ? first : binade;
  const uint32_t rounder = exponent + (static_cast<uint32_t>(23 - kFormat.mantissa) << 23);
  const uint32_t units =
      bits_as<uint32_t>(bits_as<float>(most) + bits_as<float>(rounder)) - rounder;
  uint32_t code = units + ((exponent - first) >> (23 - kFormat.mantissa));
  code = magnitude >= kInfinityF32 ? kFormat.infinite : code;
  code |= (bits >> 31) != 0 ? kFormat.sign : 0U;
  const uint32_t nan = kFormat.nan;
  const bool is_nan =
      magnitude > kInfinityF32 || (kFormat.infinite == kFormat.nan && magnitude == kInfinityF32);
  return is_nan ? nan : code;
}

[[gnu::always_inline]] inline float decode_bf16(uint32_t code) {
  return bits_as<float>(code << 16);
}

[[gnu::always_inline]] inline uint32_t encode_bf16(float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (bits & 0x7fffffff) > kInfinityF32 ? 0x7fc0U : rounded;
}

[[gnu::always_inline]] inline float decode_mxint8(uint32_t code) {
  return static_cast<float>(static_cast<std::int8_t>(code)) * 0.015625F;
}

[[gnu::always_inline]] inline uint32_t encode_mxint8(float value) {
  constexpr uint32_t rounder = 0x48000000; // 2^17: its last place is 2^-6
  constexpr uint32_t largest = 0x3ffe0000; // 127/64
  const uint32_t bits = bits_as<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t most = magnitude < largest ? magnitude : largest;
  const uint32_t units =
      bits_as<uint32_t>(bits_as<float>(most) + bits_as<float>(rounder)) - rounder;
  const uint32_t code = (bits >> 31) != 0 ? (0U - units) & 0xff : units;
  return magnitude > kInfinityF32 ? 0U : code;
}

[[gnu::always_inline]] inline float decode_e8m0(uint32_t code) {
  const uint32_t bits = code == 0 ? 0x00400000U : code << 23;
  return bits_as<float>(code == 255 ? kNanF32 : bits);
}

[[gnu::always_inline]] inline uint32_t encode_e8m0(float value) {
  const uint32_t magnitude = bits_as<uint32_t>(value) & 0x7fffffff;
  return magnitude >> 23;
}

template <Format kFormat>
[[gnu::always_inline]] inline float decoded(uint32_t code) {
  if constexpr (kFormat == Format::f16) {
    return decode<kF16>(code);
  } else if constexpr (kFormat == Format::bf16) {
    return decode_bf16(code);
  } else if constexpr (kFormat == Format::f8e4m3) {
    return decode<kE4m3>(code);
  } else if constexpr (kFormat == Format::f8e5m2) {
    return decode<kE5m2>(code);
  } else if constexpr (kFormat == Format::f6e2m3) {
    return decode<kE2m3>(code);
  } else if constexpr (kFormat == Format::f6e3m2) {
    return decode<kE3m2>(code);
  } else if constexpr (kFormat == Format::f4e2m1) {
    return decode<kE2m1>(code);
  } else if constexpr (kFormat == Format::mxint8) {
    return decode_mxint8(code);
  } else {
    return decode_e8m0(code);
  }
}

template <Format kFormat>
[[gnu::always_inline]] inline uint32_t encoded(float value) {
  if constexpr (kFormat == Format::f16) {
    return encode<kF16>(value);
  } else if constexpr (kFormat == Format::bf16) {
    return encode_bf16(value);
  } else if constexpr (kFormat == Format::f8e4m3) {
    return encode<kE4m3>(value);
  } else if constexpr (kFormat == Format::f8e5m2) {
    return encode<kE5m2>(value);
  } else if constexpr (kFormat == Format::f6e2m3) {
    return encode<kE2m3>(value);
  } else if constexpr (kFormat == Format::f6e3m2) {
    return encode<kE3m2>(value);
  } else if constexpr (kFormat == Format::f4e2m1) {
    return encode<kE2m1>(value);
  } else if constexpr (kFormat == Format::mxint8) {
    return encode_mxint8(value);
  } else {
    return encode_e8m0(value);
  }
}

template <typename T>
struct LooseOf {
  using type __attribute__((aligned(1), may_alias)) = T;
};

/// An element that may lie anywhere, as those of a payload do.
template <typename T>
using Loose = typename LooseOf<T>::type;

// ------------------------------------------------------------------------------------- operands

/// The operands of a step, as pointers.
class Operands {
 public:
  Operands(const Step& step, const Tile& tile)
      : step_(step), tile_(tile), count_(step.per_block ? tile.blocks : tile.lanes) {}

  /// Lanes or blocks, without those that fill the last vector.
  unsigned count() const { return count_; }

  template <typename T>
  unsigned padded() const {
    constexpr unsigned lanes = kVectorBytes / sizeof(T);
    return (count_ + lanes - 1) / lanes * lanes;
  }

  template <typename T>
  T* to() const {
    return reinterpret_cast<T*>(tile_.registers + size_t{step_.to} * kTileBytes);
  }

  template <typename T>
  const Loose<T>* a() const {
    return at<T>(step_.a, kMaxRegisters);
  }

  template <typename T>
  const Loose<T>* b() const {
    return at<T>(step_.b, kMaxRegisters + 1);
  }

  template <typename T>
  const Loose<T>* c() const {
    return at<T>(step_.c, kMaxRegisters + 2);
  }

 private:
  /// What lies in the payload is used there; but if it ends within a vector, a copy is.
  template <typename T>
  const Loose<T>* at(Operand operand, unsigned spare) const {
    const byte* from = tile_.registers + size_t{operand} * kTileBytes;
    if (operand >= kDirect) {
      from = tile_.in[operand - kDirect].at;
      if (count_ * sizeof(T) % kVectorBytes != 0) {
        byte* const copy = tile_.registers + size_t{spare} * kTileBytes;
        __builtin_memcpy(copy, from, count_ * sizeof(T));
        from = copy;
      }
    }
    return reinterpret_cast<const Loose<T>*>(from);
  }

  const Step& step_;
  const Tile& tile_;
  unsigned count_;
};

template <typename T, typename F>
[[gnu::always_inline]] inline void each_one(const Operands& at, F&& f) {
  T* const to = at.to<T>();
  const auto* const a = at.a<T>();
  const unsigned count = at.padded<T>();
  WEIR_EACH_LANE
  for (unsigned k = 0; k < count; ++k) {
    to[k] = f(a[k]);
  }
}

template <typename T, typename F>
[[gnu::always_inline]] inline void each_two(const Operands& at, F&& f) {
  T* const to = at.to<T>();
  const auto* const a = at.a<T>();
  const auto* const b = at.b<T>();
  const unsigned count = at.padded<T>();
  WEIR_EACH_LANE
  for (unsigned k = 0; k < count; ++k) {
    to[k] = f(a[k], b[k]);
  }
}

// ---------------------------------------------------------------------------------- arithmetic

template <typename T>
[[gnu::always_inline]] inline T larger(T a, T b) {
  T best = b > a ? b : a;
  if constexpr (kIsFloat<T>) {
    best = a != a ? a : best;
    best = b != b ? b : best;
  }
  return best;
}

template <typename T>
[[gnu::always_inline]] inline T smaller(T a, T b) {
  T best = b < a ? b : a;
  if constexpr (kIsFloat<T>) {
    best = a != a ? a : best;
    best = b != b ? b : best;
  }
  return best;
}

/// Integers in unsigned arithmetic, whose overflow wraps.
template <typename T>
[[gnu::always_inline]] inline T sum(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return a + b;
  } else {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
}

template <typename T>
[[gnu::always_inline]] inline T difference(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return a - b;
  } else {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
}

template <typename T>
[[gnu::always_inline]] inline T product(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return a * b;
  } else { // of 32 bits at least, or C++ makes signed integers of short ones
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
}

template <typename T>
[[gnu::always_inline]] inline T saturated_sum(T a, T b) {
  const T wrapped = sum(a, b);
  if constexpr (kIsSigned<T>) {
    const bool overflows = ((a ^ wrapped) & (b ^ wrapped)) < 0;
    const T end = a < 0 ? Limits<T>::lowest : Limits<T>::highest;
    return overflows ? end : wrapped;
  } else {
    return wrapped < a ? Limits<T>::highest : wrapped;
  }
}

template <typename T>
[[gnu::always_inline]] inline T saturated_difference(T a, T b) {
  const T wrapped = difference(a, b);
  if constexpr (kIsSigned<T>) {
    const bool overflows = ((a ^ b) & (a ^ wrapped)) < 0;
    const T end = a < 0 ? Limits<T>::lowest : Limits<T>::highest;
    return overflows ? end : wrapped;
  } else {
    return a < b ? T{0} : wrapped;
  }
}

template <typename T>
[[gnu::always_inline]] inline T magnitude(T a) {
  if constexpr (kIsFloat<T>) {
    return bits_as<T>(static_cast<Unsigned<T>>(
        bits_as<Unsigned<T>>(a) & static_cast<Unsigned<T>>(Limits<Signed<T>>::highest)));
  } else if constexpr (kIsSigned<T>) {
    return a < 0 ? difference(T{0}, a) : a;
  } else {
    return a;
  }
}

template <typename T>
constexpr Unsigned<T> kInfinityBits = sizeof(T) == 4 ? static_cast<Unsigned<T>>(kInfinityF32)
                                                     : static_cast<Unsigned<T>>(0x7ff0000000000000);
template <typename T>
constexpr Unsigned<T> kNanBits = sizeof(T) == 4 ? static_cast<Unsigned<T>>(kNanF32)
                                                : static_cast<Unsigned<T>>(0x7ff8000000000000);

template <typename T>
[[gnu::always_inline]] inline T finite_magnitude(T a) {
  const auto bits = bits_as<Unsigned<T>>(magnitude(a));
  return bits_as<T>(bits < kInfinityBits<T> ? bits : Unsigned<T>{0});
}

template <typename T>
[[gnu::always_inline]] inline T canonical(T a) {
  return a != a ? bits_as<T>(kNanBits<T>) : a;
}

/// Floor of the logarithm of the magnitude; -128 of 0, infinity and NaN of themselves.
[[gnu::always_inline]] inline float floor_log2(float a) {
  const auto bits = bits_as<int32_t>(magnitude(a));
  // A subnormal's bits are a whole number of 2^-149.
  const int32_t units = bits_as<int32_t>(static_cast<float>(bits));
  const int32_t biased = bits < (1 << 23) ? units - (149 << 23) : bits;
  const auto whole = static_cast<float>((biased >> 23) - 127);
  const float finite = bits == 0 ? -128.0F : whole;
  return bits >= static_cast<int32_t>(kInfinityF32) ? bits_as<float>(bits) : finite;
}

/// Of the largest integer that is not above `a`.
[[gnu::always_inline]] inline float pow2(float a) {
  const float above = a > -150 ? a : -150; // NaN too
  const float within = above < 128 ? above : 128;
  auto whole = static_cast<int32_t>(within);
  whole += bits_as<int32_t>(within - static_cast<float>(whole)) >> 31; // -1 where it is above
  // Below 2^-126 the bits are a whole number of 2^-149: a power of two, or 0 of less than one.
  const int32_t units = whole < -127 ? whole + 149 : 22;
  const auto small = static_cast<int32_t>(bits_as<float>((units + 127) << 23));
  const int32_t bits = whole < -126 ? small : (whole + 127) << 23;
  return a != a ? a : bits_as<float>(bits);
}

template <typename To, typename From>
[[gnu::always_inline]] inline To converted(From from) {
  if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    // The first number that is too large is a power of two, which each float format has.
    constexpr From end =
        kIsSigned<To> ? -static_cast<From>(Limits<To>::lowest)
                      : static_cast<From>(To{1} << (sizeof(To) * 8 - 2)) * (kIsSigned<To> ? 2 : 4);
    constexpr From begin = static_cast<From>(Limits<To>::lowest);
    if (from != from) {
      return To{0};
    }
    if (from >= end) {
      return Limits<To>::highest;
    }
    return from <= begin ? Limits<To>::lowest : static_cast<To>(from);
  } else {
    return static_cast<To>(from);
  }
}

template <typename To, typename From>
inline void convert(const Operands& at) {
  To* const to = at.to<To>();
  const auto* const a = at.a<From>();
  const unsigned count = at.count();
  WEIR_EACH_LANE
  for (unsigned k = 0; k < count; ++k) {
    to[k] = converted<To>(a[k]);
  }
}

template <typename To>
inline void convert_from(const Operands& at, Lane from) {
  switch (from) {
  case Lane::f32:
    return convert<To, float>(at);
  case Lane::f64:
    return convert<To, double>(at);
  case Lane::i16:
    return convert<To, std::int16_t>(at);
  case Lane::i32:
    return convert<To, int32_t>(at);
  case Lane::u32:
    return convert<To, uint32_t>(at);
  case Lane::i64:
    return convert<To, std::int64_t>(at);
  case Lane::u64:
    return convert<To, uint64_t>(at);
  }
}

template <typename T, typename F>
[[gnu::always_inline]] inline void compare(const Operands& at, F&& f) {
  using Mask = Signed<T>;
  Mask* const to = at.to<Mask>();
  const auto* const a = at.a<T>();
  const auto* const b = at.b<T>();
  const unsigned count = at.padded<T>();
  WEIR_EACH_LANE
  for (unsigned k = 0; k < count; ++k) {
    to[k] = f(a[k], b[k]) ? Mask{-1} : Mask{0};
  }
}

/// By bits, for which each level has vectors: a condition is all bits of a lane, or none.
template <typename T>
inline void select(const Operands& at) {
  using U = Unsigned<T>;
  U* const to = at.to<U>();
  const auto* const a = at.a<U>();
  const auto* const b = at.b<U>();
  const auto* const c = at.c<U>();
  const unsigned count = at.padded<U>();
  WEIR_EACH_LANE
  for (unsigned k = 0; k < count; ++k) {
    to[k] = static_cast<U>(b[k] ^ ((a[k] ^ b[k]) & c[k]));
  }
}

template <typename T>
inline void fused(const Operands& at) {
  T* const to = at.to<T>();
  const auto* const a = at.a<T>();
  const auto* const b = at.b<T>();
  const auto* const c = at.c<T>();
  const unsigned count = at.count();
  for (unsigned k = 0; k < count; ++k) {
    if constexpr (sizeof(T) == 4) {
      to[k] = __builtin_fmaf(a[k], b[k], c[k]);
    } else {
      to[k] = __builtin_fma(a[k], b[k], c[k]);
    }
  }
}

template <typename T>
inline void fill(const Step& step, const Operands& at) {
  T* const to = at.to<T>();
  const T value = bits_as<T>(static_cast<Unsigned<T>>(step.bits));
  const unsigned count = at.padded<T>(); // what fills the last vector has the value too
  WEIR_EACH_LANE
  for (unsigned k = 0; k < count; ++k) {
    to[k] = value;
  }
}

template <typename T>
inline bool any_set(const Operands& at) {
  const auto* const a = at.a<T>();
  const unsigned count = at.count();
  T any = 0;
  for (unsigned k = 0; k < count; ++k) {
    any |= a[k];
  }
  return any != 0;
}

// -------------------------------------------------------------------------------------- blocks

/// Halves are joined lane by lane until one is left.
template <unsigned kBlock, Op kOp>
[[gnu::always_inline]] inline float over_block(const Loose<float>* from) {
  constexpr bool kIsMax = kOp == Op::block_max;
  float part[kBlock / 2];
  WEIR_EACH_LANE
  for (unsigned k = 0; k < kBlock / 2; ++k) {
    part[k] = kIsMax ? larger(from[k], from[k + kBlock / 2]) : from[k] + from[k + kBlock / 2];
  }
  for (unsigned half = kBlock / 4; half != 0; half /= 2) {
    WEIR_EACH_LANE
    for (unsigned k = 0; k < half; ++k) {
      part[k] = kIsMax ? larger(part[k], part[k + half]) : part[k] + part[k + half];
    }
  }
  return part[0];
}

/// The bits of magnitudes have their order, and those of what is not finite count as 0.
template <unsigned kBlock>
[[gnu::always_inline]] inline float finite_over_block(const Loose<float>* from) {
  int32_t largest = 0;
  for (unsigned k = 0; k < kBlock; ++k) {
    const auto bits = bits_as<int32_t>(finite_magnitude(static_cast<float>(from[k])));
    largest = bits > largest ? bits : largest;
  }
  return bits_as<float>(largest);
}

/// Calls f with a block's lanes as a constant.
template <typename F>
[[gnu::always_inline]] inline void for_block_of(unsigned lanes, F&& f) {
  switch (lanes) {
  case 8:
    return f.template operator()<8>();
  case 16:
    return f.template operator()<16>();
  case 32:
    return f.template operator()<32>();
  case 64:
    return f.template operator()<64>();
  default:
    return f.template operator()<128>();
  }
}

template <Op kOp>
inline void over_blocks(const Operands& at, const Tile& tile) {
  float* const to = at.to<float>();
  const auto* const a = at.a<float>();
  const unsigned blocks = tile.blocks;
  for_block_of(tile.block, [=]<unsigned kBlock>() {
    for (unsigned b = 0; b < blocks; ++b) {
      const auto* const block = a + size_t{b} * kBlock;
      if constexpr (kOp == Op::finite_block_max) {
        to[b] = finite_over_block<kBlock>(block);
      } else {
        to[b] = over_block<kBlock, kOp>(block);
      }
    }
  });
}

template <unsigned kLanes>
struct FloatsOf {
  using type __attribute__((vector_size(kLanes * sizeof(float)))) = float;
};

#if defined(__AVX512F__)
constexpr unsigned kFloats = 16;
#elif defined(__AVX2__)
constexpr unsigned kFloats = 8;
#else
constexpr unsigned kFloats = 4;
#endif

template <unsigned kBlock>
using FloatsOfBlock = typename FloatsOf<(kBlock < kFloats ? kBlock : kFloats)>::type;

/// `to` of f(numbers from this lane on, b of the block, c of the lane), a vector at a time.
template <unsigned kBlock, typename Numbers, typename F>
[[gnu::always_inline]] inline void with_block_by(const Operands& at, unsigned blocks,
                                                 Numbers&& numbers, F&& f) {
  using Floats = FloatsOfBlock<kBlock>;
  constexpr size_t lanes = sizeof(Floats) / sizeof(float);
  float* const to = at.to<float>();
  const auto* const b = at.b<float>();
  const auto* const c = at.c<float>();
  for (unsigned block = 0; block < blocks; ++block) {
    const Floats scale = b[block] - Floats{}; // -0 stays
    for (size_t k = 0; k < kBlock; k += lanes) {
      const size_t lane = size_t{block} * kBlock + k;
      Floats third;
      __builtin_memcpy(&third, c + lane, sizeof third);
      const Floats result = f(numbers(lane), scale, third);
      __builtin_memcpy(to + lane, &result, sizeof result);
    }
  }
}

template <typename F>
[[gnu::always_inline]] inline void with_block(const Operands& at, const Tile& tile, F&& f) {
  const auto* const a = at.a<float>();
  for_block_of(tile.block, [&]<unsigned kBlock>() {
    const auto numbers = [a](size_t lane) {
      FloatsOfBlock<kBlock> left;
      __builtin_memcpy(&left, a + lane, sizeof left);
      return left;
    };
    with_block_by<kBlock>(at, tile.blocks, numbers, f);
  });
}

/// Where a division by a power of two is a product by another one, which rounds alike.
inline bool has_exact_inverse(float a) {
  const uint32_t bits = bits_as<uint32_t>(magnitude(a));
  const bool is_power = (bits & 0x7fffff) == 0 && bits != 0 && bits <= 0x7f000000;
  return is_power || bits == 0x00400000;
}

/// `keep` takes a quotient of each lane.
template <typename Keep>
[[gnu::always_inline]] inline void divide_by_block(const Operands& at, const Tile& tile,
                                                   Keep&& keep) {
  const auto* const a = at.a<float>();
  const auto* const b = at.b<float>();
  const unsigned blocks = tile.blocks;
  for_block_of(tile.block, [=]<unsigned kBlock>() {
    for (unsigned block = 0; block < blocks; ++block) {
      const size_t begin = size_t{block} * kBlock;
      const float by = b[block];
      if (has_exact_inverse(by)) {
        const float inverse = 1 / by;
        WEIR_EACH_LANE
        for (unsigned k = 0; k < kBlock; ++k) {
          keep(begin + k, a[begin + k] * inverse);
        }
      } else {
        WEIR_EACH_LANE
        for (unsigned k = 0; k < kBlock; ++k) {
          keep(begin + k, a[begin + k] / by);
        }
      }
    }
  });
}

inline void divide_by_block(const Operands& at, const Tile& tile) {
  float* const to = at.to<float>();
  divide_by_block(at, tile, [to](size_t lane, float quotient) { to[lane] = quotient; });
}

template <typename T>
inline void spread(const Operands& at, const Tile& tile) {
  T* const to = at.to<T>();
  const auto* const a = at.a<T>();
  const unsigned blocks = tile.blocks;
  const unsigned lanes = tile.block;
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned k = 0; k < lanes; ++k) {
      to[block * lanes + k] = a[block];
    }
  }
}

// ---------------------------------------------------------------------------- payload to lanes

/// Codes of 4 or 6 bits lie one behind the other, the first in the lowest bits.
template <unsigned kBits>
inline void unpack(uint8_t* to, const byte* from, unsigned count) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(from);
  if constexpr (kBits == 4) {
    WEIR_EACH_LANE
    for (size_t k = 0; k < count / 2; ++k) {
      to[2 * k] = bytes[k] & 15;
      to[2 * k + 1] = bytes[k] >> 4;
    }
  } else {
    for (size_t k = 0; k < count / 4; ++k) {
      const uint32_t four = bytes[3 * k] | static_cast<uint32_t>(bytes[3 * k + 1]) << 8 |
                            static_cast<uint32_t>(bytes[3 * k + 2]) << 16;
      to[4 * k] = four & 63;
      to[4 * k + 1] = four >> 6 & 63;
      to[4 * k + 2] = four >> 12 & 63;
      to[4 * k + 3] = static_cast<uint8_t>(four >> 18);
    }
  }
}

template <unsigned kBits>
inline void pack(byte* to, const uint8_t* from, unsigned count) {
  auto* const bytes = reinterpret_cast<uint8_t*>(to);
  if constexpr (kBits == 4) {
    for (size_t k = 0; k < count / 2; ++k) {
      bytes[k] = static_cast<uint8_t>(from[2 * k] | from[2 * k + 1] << 4);
    }
  } else {
    for (size_t k = 0; k < count / 4; ++k) {
      const uint32_t four = from[4 * k] | static_cast<uint32_t>(from[4 * k + 1]) << 6 |
                            static_cast<uint32_t>(from[4 * k + 2]) << 12 |
                            static_cast<uint32_t>(from[4 * k + 3]) << 18;
      bytes[3 * k] = static_cast<uint8_t>(four);
      bytes[3 * k + 1] = static_cast<uint8_t>(four >> 8);
      bytes[3 * k + 2] = static_cast<uint8_t>(four >> 16);
    }
  }
}

/// As it lies there, of `Stored`; f makes a lane of it. Places are in registers of the CPU, or the
/// compiler would read them anew for each lane.
template <unsigned kStride, typename Stored, typename T, typename F>
[[gnu::always_inline]] inline void load_by(T* to, const byte* from, unsigned count, F&& f) {
  WEIR_EACH_LANE
  for (unsigned k = 0; k < count; ++k) {
    to[k] = f(element<Stored>(from + size_t{k} * kStride));
  }
}

template <typename Stored, typename T, typename F>
[[gnu::always_inline]] inline void load_each(T* to, const FieldPlace& place, unsigned count,
                                             F&& f) {
  const byte* const from = place.at;
  const size_t stride = place.stride;
  if (stride == sizeof(Stored)) {
    return load_by<sizeof(Stored), Stored>(to, from, count, f);
  }
  if (stride == 8) {
    return load_by<8, Stored>(to, from, count, f);
  }
  if (stride == 16) {
    return load_by<16, Stored>(to, from, count, f);
  }
  for (unsigned k = 0; k < count; ++k) {
    to[k] = f(element<Stored>(from + k * stride));
  }
}

template <unsigned kStride, typename Stored, typename T, typename F>
[[gnu::always_inline]] inline void store_by(byte* to, const Loose<T>* from, unsigned count, F&& f) {
  WEIR_EACH_LANE
  for (unsigned k = 0; k < count; ++k) {
    const Stored stored = f(from[k]);
    __builtin_memcpy(to + size_t{k} * kStride, &stored, sizeof stored);
  }
}

template <typename Stored, typename T, typename F>
[[gnu::always_inline]] inline void store_each(const FieldPlace& place, const Loose<T>* from,
                                              unsigned count, F&& f) {
  byte* const to = place.at;
  const size_t stride = place.stride;
  if (stride == sizeof(Stored)) {
    return store_by<sizeof(Stored), Stored, T>(to, from, count, f);
  }
  if (stride == 8) {
    return store_by<8, Stored, T>(to, from, count, f);
  }
  for (unsigned k = 0; k < count; ++k) {
    const Stored stored = f(from[k]);
    __builtin_memcpy(to + k * stride, &stored, sizeof stored);
  }
}

template <Format kFormat, typename Code>
inline void load_narrow(const Operands& at, const FieldPlace& from) {
  load_each<Code>(at.to<float>(), from, at.count(),
                  [](Code code) { return decoded<kFormat>(code); });
}

template <Format kFormat, typename Code>
inline void store_narrow(const Operands& at, const FieldPlace& to) {
  store_each<Code, float>(to, at.a<float>(), at.count(),
                          [](float value) { return static_cast<Code>(encoded<kFormat>(value)); });
}

template <Format kFormat, unsigned kBits>
inline void load_packed(const Operands& at, const FieldPlace& from) {
  uint8_t codes[kTileBytes / sizeof(float)];
  unpack<kBits>(codes, from.at, at.count());
  float* const to = at.to<float>();
  const unsigned count = at.count();
  for (unsigned k = 0; k < count; ++k) {
    to[k] = decoded<kFormat>(codes[k]);
  }
}

template <Format kFormat, unsigned kBits>
inline void store_packed(const Operands& at, const FieldPlace& to) {
  uint8_t codes[kTileBytes / sizeof(float)];
  const auto* const a = at.a<float>();
  const unsigned count = at.count();
  for (unsigned k = 0; k < count; ++k) {
    codes[k] = static_cast<uint8_t>(encoded<kFormat>(a[k]));
  }
  pack<kBits>(to.at, codes, count);
}

template <typename T, typename Stored>
inline void load_plain(const Operands& at, const FieldPlace& from) {
  load_each<Stored>(at.to<T>(), from, at.count(),
                    [](Stored stored) { return static_cast<T>(stored); });
}

template <typename Stored, typename T>
inline void store_plain(const Operands& at, const FieldPlace& to) {
  store_each<Stored, T>(to, at.a<T>(), at.count(), [](T value) {
    if constexpr (kIsFloat<T>) {
      return static_cast<Stored>(canonical(value));
    } else {
      return static_cast<Stored>(value);
    }
  });
}

inline void load_field(const Step& step, const Operands& at, const FieldPlace& from) {
  switch (step.format) {
  case Format::f32:
    return load_plain<float, float>(at, from);
  case Format::f64:
    return load_plain<double, double>(at, from);
  case Format::i16:
    return load_plain<std::int16_t, std::int16_t>(at, from);
  case Format::i32:
    return load_plain<int32_t, int32_t>(at, from);
  case Format::u32:
    return load_plain<uint32_t, uint32_t>(at, from);
  case Format::i64:
    return load_plain<std::int64_t, std::int64_t>(at, from);
  case Format::u64:
    return load_plain<uint64_t, uint64_t>(at, from);
  case Format::f16:
    return load_narrow<Format::f16, std::uint16_t>(at, from);
  case Format::bf16:
    return load_narrow<Format::bf16, std::uint16_t>(at, from);
  case Format::f8e4m3:
    return load_narrow<Format::f8e4m3, uint8_t>(at, from);
  case Format::f8e5m2:
    return load_narrow<Format::f8e5m2, uint8_t>(at, from);
  case Format::f6e2m3:
    return load_packed<Format::f6e2m3, 6>(at, from);
  case Format::f6e3m2:
    return load_packed<Format::f6e3m2, 6>(at, from);
  case Format::f4e2m1:
    return load_packed<Format::f4e2m1, 4>(at, from);
  case Format::mxint8:
    return load_narrow<Format::mxint8, uint8_t>(at, from);
  case Format::i8:
    return load_plain<std::int16_t, std::int8_t>(at, from);
  case Format::u8:
    return load_plain<uint32_t, uint8_t>(at, from);
  case Format::u16:
    return load_plain<uint32_t, std::uint16_t>(at, from);
  case Format::e8m0:
    return load_narrow<Format::e8m0, uint8_t>(at, from);
  }
}

inline void store_field(const Step& step, const Operands& at, const FieldPlace& to) {
  switch (step.format) {
  case Format::f32:
    return store_plain<float, float>(at, to);
  case Format::f64:
    return store_plain<double, double>(at, to);
  case Format::i16:
    return store_plain<std::int16_t, std::int16_t>(at, to);
  case Format::i32:
    return store_plain<int32_t, int32_t>(at, to);
  case Format::u32:
    return store_plain<uint32_t, uint32_t>(at, to);
  case Format::i64:
    return store_plain<std::int64_t, std::int64_t>(at, to);
  case Format::u64:
    return store_plain<uint64_t, uint64_t>(at, to);
  case Format::f16:
    return store_narrow<Format::f16, std::uint16_t>(at, to);
  case Format::bf16:
    return store_narrow<Format::bf16, std::uint16_t>(at, to);
  case Format::f8e4m3:
    return store_narrow<Format::f8e4m3, uint8_t>(at, to);
  case Format::f8e5m2:
    return store_narrow<Format::f8e5m2, uint8_t>(at, to);
  case Format::f6e2m3:
    return store_packed<Format::f6e2m3, 6>(at, to);
  case Format::f6e3m2:
    return store_packed<Format::f6e3m2, 6>(at, to);
  case Format::f4e2m1:
    return store_packed<Format::f4e2m1, 4>(at, to);
  case Format::mxint8:
    return store_narrow<Format::mxint8, uint8_t>(at, to);
  case Format::i8:
    return store_plain<std::int8_t, std::int16_t>(at, to);
  case Format::u8:
    return store_plain<uint8_t, uint32_t>(at, to);
  case Format::u16:
    return store_plain<std::uint16_t, uint32_t>(at, to);
  case Format::e8m0:
    return store_narrow<Format::e8m0, uint8_t>(at, to);
  }
}

template <Format kFormat>
inline void quantise_to(const Operands& at) {
  each_one<float>(at, [](float a) { return decoded<kFormat>(encoded<kFormat>(a)); });
}

inline void quantise(const Step& step, const Operands& at) {
  switch (step.format) {
  case Format::f16:
    return quantise_to<Format::f16>(at);
  case Format::bf16:
    return quantise_to<Format::bf16>(at);
  case Format::f8e4m3:
    return quantise_to<Format::f8e4m3>(at);
  case Format::f8e5m2:
    return quantise_to<Format::f8e5m2>(at);
  case Format::f6e2m3:
    return quantise_to<Format::f6e2m3>(at);
  case Format::f6e3m2:
    return quantise_to<Format::f6e3m2>(at);
  case Format::f4e2m1:
    return quantise_to<Format::f4e2m1>(at);
  case Format::mxint8:
    return quantise_to<Format::mxint8>(at);
  default:
    return quantise_to<Format::e8m0>(at);
  }
}

/// To the range of a narrower integer.
template <typename T>
inline void clip(const Step& step, const Operands& at) {
  T low = 0;
  T high = 0;
  switch (step.format) {
  case Format::i8:
    low = static_cast<T>(-128);
    high = 127;
    break;
  case Format::u8:
    high = 255;
    break;
  case Format::i16:
    low = static_cast<T>(-32768);
    high = 32767;
    break;
  case Format::u16:
    high = static_cast<T>(65535);
    break;
  case Format::i32:
    low = static_cast<T>(-2147483647 - 1);
    high = static_cast<T>(2147483647);
    break;
  default:
    high = static_cast<T>(4294967295);
    break;
  }
  each_one<T>(at, [low, high](T a) {
    const T above = a < low ? low : a;
    return above > high ? high : above;
  });
}

// ------------------------------------------------------------------------------- fused with codecs

constexpr Operand kSpare = kMaxRegisters;

#if defined(__F16C__)
/// The numbers of codes of f8, a vector at a time. E5M2 is the upper half of f16. E4M3 has its
/// mantissa and exponent, less 8.
template <Format kFormat>
[[gnu::always_inline]] inline typename FloatsOf<kFloats>::type numbers_of(const byte* codes) {
  using Floats = typename FloatsOf<kFloats>::type;
  using Halves __attribute__((vector_size(2 * kFloats))) = std::int16_t;
#if defined(__AVX512F__)
  const __m256i widened =
      _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
#else
  const __m128i widened =
      _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
#endif
  Halves halves = reinterpret_cast<Halves>(widened) << (kFormat == Format::f8e5m2 ? 8 : 7);
  if constexpr (kFormat == Format::f8e4m3) {
    constexpr std::int16_t without_copy_of_sign = static_cast<std::int16_t>(0xbfff);
    constexpr std::int16_t nan = 0x3f80;
    halves &= without_copy_of_sign;
    halves |= ((halves & nan) == nan) & std::int16_t{0x7fff};
  }
#if defined(__AVX512F__)
  const Floats numbers = _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(halves));
#else
  const Floats numbers = _mm256_cvtph_ps(reinterpret_cast<__m128i>(halves));
#endif
  return kFormat == Format::f8e4m3 ? numbers * 256.0F : numbers;
}

template <Format kFormat, typename F>
inline void scale_codes(const Operands& at, const Tile& tile, const byte* codes, F&& f) {
  for_block_of(tile.block, [&]<unsigned kBlock>() {
    if constexpr (kBlock >= kFloats) {
      const auto numbers = [codes](size_t lane) { return numbers_of<kFormat>(codes + lane); };
      with_block_by<kBlock>(at, tile.blocks, numbers, f);
    }
  });
}
#endif

template <typename F>
inline void scale_loaded(const Step& step, const Tile& tile, F&& f) {
#if defined(__F16C__)
  const byte* const codes = tile.in[step.a].at;
  if (step.format == Format::f8e4m3 && tile.block >= kFloats) {
    return scale_codes<Format::f8e4m3>(Operands(step, tile), tile, codes, f);
  }
  if (step.format == Format::f8e5m2 && tile.block >= kFloats) {
    return scale_codes<Format::f8e5m2>(Operands(step, tile), tile, codes, f);
  }
#endif
  Step load = step;
  load.to = kSpare;
  load_field(load, Operands(load, tile), tile.in[step.a]);
  Step scale = step;
  scale.a = kSpare;
  with_block(Operands(scale, tile), tile, f);
}

template <Format kFormat>
inline void store_quotients(const Operands& at, const Tile& tile, byte* codes) {
  divide_by_block(at, tile, [codes](size_t lane, float quotient) {
    codes[lane] = static_cast<byte>(encoded<kFormat>(quotient));
  });
}

inline void store_quotient(const Step& step, const Tile& tile) {
  byte* const codes = tile.out[step.to].at;
  switch (step.format) {
  case Format::f8e4m3:
    return store_quotients<Format::f8e4m3>(Operands(step, tile), tile, codes);
  case Format::f8e5m2:
    return store_quotients<Format::f8e5m2>(Operands(step, tile), tile, codes);
  case Format::mxint8:
    return store_quotients<Format::mxint8>(Operands(step, tile), tile, codes);
  default:
    break;
  }
  Step divide = step;
  divide.to = kSpare;
  divide_by_block(Operands(divide, tile), tile);
  Step store = step;
  store.a = kSpare;
  store_field(store, Operands(store, tile), tile.out[step.to]);
}

// ----------------------------------------------------------------------------------------- steps

template <typename T>
inline void run_integer(const Step& step, const Operands& at) {
  using U = Unsigned<T>;
  constexpr U kWidth = sizeof(T) * 8;
  switch (step.op) {
  case Op::add_sat:
    return each_two<T>(at, [](T a, T b) { return saturated_sum(a, b); });
  case Op::sub_sat:
    return each_two<T>(at, [](T a, T b) { return saturated_difference(a, b); });
  case Op::bit_and:
    return each_two<T>(at, [](T a, T b) { return static_cast<T>(a & b); });
  case Op::bit_or:
    return each_two<T>(at, [](T a, T b) { return static_cast<T>(a | b); });
  case Op::bit_xor:
    return each_two<T>(at, [](T a, T b) { return static_cast<T>(a ^ b); });
  case Op::bit_not:
    return each_one<T>(at, [](T a) { return static_cast<T>(~a); });
  case Op::shl:
    return each_two<T>(at, [](T a, T b) {
      return static_cast<T>(static_cast<U>(a) << (static_cast<U>(b) % kWidth));
    });
  case Op::shr:
    return each_two<T>(at,
                       [](T a, T b) { return static_cast<T>(a >> (static_cast<U>(b) % kWidth)); });
  case Op::clip:
    return clip<T>(step, at);
  default:
    return;
  }
}

template <typename T>
inline void run_float(const Step& step, const Operands& at) {
  switch (step.op) {
  case Op::div:
    return each_two<T>(at, [](T a, T b) { return a / b; });
  case Op::finite_abs:
    return each_one<T>(at, [](T a) { return finite_magnitude(a); });
  case Op::fma:
    return fused<T>(at);
  case Op::is_nan: {
    Signed<T>* const to = at.to<Signed<T>>();
    const auto* const a = at.a<T>();
    const unsigned count = at.padded<T>();
    WEIR_EACH_LANE
    for (unsigned k = 0; k < count; ++k) {
      to[k] = a[k] != a[k] ? Signed<T>{-1} : Signed<T>{0};
    }
    return;
  }
  case Op::sqrt:
    return each_one<T>(at, [](T a) {
      if constexpr (sizeof(T) == 4) {
        return __builtin_sqrtf(a);
      } else {
        return __builtin_sqrt(a);
      }
    });
  default:
    return;
  }
}

template <typename T>
inline void run_lane(const Step& step, const Operands& at, Tile& tile) {
  switch (step.op) {
  case Op::copy:
    return each_one<T>(at, [](T a) { return a; });
  case Op::fill:
    return fill<T>(step, at);
  case Op::add:
    return each_two<T>(at, [](T a, T b) { return sum(a, b); });
  case Op::sub:
    return each_two<T>(at, [](T a, T b) { return difference(a, b); });
  case Op::mul:
    return each_two<T>(at, [](T a, T b) { return product(a, b); });
  case Op::min:
    return each_two<T>(at, [](T a, T b) { return smaller(a, b); });
  case Op::max:
    return each_two<T>(at, [](T a, T b) { return larger(a, b); });
  case Op::neg:
    return each_one<T>(at, [](T a) {
      if constexpr (kIsFloat<T>) {
        return -a;
      } else {
        return difference(T{0}, a);
      }
    });
  case Op::abs:
    return each_one<T>(at, [](T a) { return magnitude(a); });
  case Op::less:
    return compare<T>(at, [](T a, T b) { return a < b; });
  case Op::less_equal:
    return compare<T>(at, [](T a, T b) { return a <= b; });
  case Op::equal:
    return compare<T>(at, [](T a, T b) { return a == b; });
  case Op::not_equal:
    return compare<T>(at, [](T a, T b) { return a != b; });
  case Op::select:
    return select<T>(at);
  case Op::convert:
    return convert_from<T>(at, step.from);
  case Op::spread:
    return spread<T>(at, tile);
  case Op::flag:
    if constexpr (!kIsFloat<T>) {
      tile.flags |= any_set<T>(at) ? step.bits : 0;
    }
    return;
  default:
    if constexpr (kIsFloat<T>) {
      return run_float<T>(step, at);
    } else {
      return run_integer<T>(step, at);
    }
  }
}

/// Those of f32 alone, and of payloads. False for other ones.
inline bool run_special(const Step& step, const Operands& at, const Tile& tile) {
  switch (step.op) {
  case Op::load:
    load_field(step, at, tile.in[step.a]);
    return true;
  case Op::store:
    store_field(step, at, tile.out[step.to]);
    return true;
  case Op::floor_log2:
    each_one<float>(at, [](float a) { return floor_log2(a); });
    return true;
  case Op::pow2:
    each_one<float>(at, [](float a) { return pow2(a); });
    return true;
  case Op::block_max:
    over_blocks<Op::block_max>(at, tile);
    return true;
  case Op::block_sum:
    over_blocks<Op::block_sum>(at, tile);
    return true;
  case Op::mul_block:
    with_block(at, tile, [](auto a, auto b, auto) { return a * b; });
    return true;
  case Op::div_block:
    divide_by_block(at, tile);
    return true;
  case Op::mul_add_block:
    with_block(at, tile, [](auto a, auto b, auto c) { return c + a * b; });
    return true;
  case Op::finite_block_max:
    over_blocks<Op::finite_block_max>(at, tile);
    return true;
  case Op::load_mul_block:
    scale_loaded(step, tile, [](auto a, auto b, auto) { return a * b; });
    return true;
  case Op::load_mul_add_block:
    scale_loaded(step, tile, [](auto a, auto b, auto c) { return c + a * b; });
    return true;
  case Op::div_block_store:
    store_quotient(step, tile);
    return true;
  case Op::quantise:
    quantise(step, at);
    return true;
  default:
    return false;
  }
}

inline void run_step(const Step& step, Tile& tile) {
  const Operands at(step, tile);
  if (run_special(step, at, tile)) {
    return;
  }
  switch (step.lane) {
  case Lane::f32:
    return run_lane<float>(step, at, tile);
  case Lane::f64:
    return run_lane<double>(step, at, tile);
  case Lane::i16:
    return run_lane<std::int16_t>(step, at, tile);
  case Lane::i32:
    return run_lane<int32_t>(step, at, tile);
  case Lane::u32:
    return run_lane<uint32_t>(step, at, tile);
  case Lane::i64:
    return run_lane<std::int64_t>(step, at, tile);
  case Lane::u64:
    return run_lane<uint64_t>(step, at, tile);
  }
}

// --------------------------------------------------------------------------------- direct folds

#if defined(__AVX512F__)
constexpr size_t kCpuVectorBytes = 64;
#elif defined(__AVX2__)
constexpr size_t kCpuVectorBytes = 32;
#else
constexpr size_t kCpuVectorBytes = 16;
#endif

template <typename T>
struct CpuVectorOf {
  using type __attribute__((vector_size(kCpuVectorBytes))) = T;
};

/// The sums of kVectors vectors of T. V may be one element as well.
template <typename T, unsigned kVectors, typename V, typename F>
[[gnu::always_inline]] inline void fold_vectors(byte* sums, const byte* const* inputs,
                                                unsigned count, size_t offset, F&& f) {
  V sum[kVectors];
  __builtin_memcpy(sum, inputs[0] + offset, sizeof sum);
  for (unsigned i = 1; i < count; ++i) {
    for (unsigned v = 0; v < kVectors; ++v) {
      V next;
      __builtin_memcpy(&next, inputs[i] + offset + v * sizeof(V), sizeof next);
      sum[v] = f(sum[v], next);
    }
  }
  if constexpr (kIsFloat<T>) {
    const V nan = V{} + bits_as<T>(kNanBits<T>);
    for (unsigned v = 0; v < kVectors; ++v) {
      sum[v] = sum[v] != sum[v] ? nan : sum[v];
    }
  }
  __builtin_memcpy(sums, sum, sizeof sum);
}

template <typename T, typename F>
[[gnu::always_inline]] inline void fold_inputs(byte* sums, const byte* const* inputs,
                                               unsigned count, size_t offset, size_t bytes, F&& f) {
  using V = typename CpuVectorOf<T>::type;
  constexpr unsigned kMany = 8;
  size_t at = 0;
  for (; bytes - at >= kMany * sizeof(V); at += kMany * sizeof(V)) {
    fold_vectors<T, kMany, V>(sums + at, inputs, count, offset + at, f);
  }
  for (; bytes - at >= sizeof(V); at += sizeof(V)) {
    fold_vectors<T, 1, V>(sums + at, inputs, count, offset + at, f);
  }
  for (; at < bytes; at += sizeof(T)) {
    fold_vectors<T, 1, T>(sums + at, inputs, count, offset + at, f);
  }
}

/// Sums of integers in unsigned arithmetic. The rest as sum(), larger() and smaller().
template <typename T>
inline void fold_lanes(Op op, byte* sums, const byte* const* inputs, unsigned count, size_t offset,
                       size_t bytes) {
  const auto unless_nan = []([[maybe_unused]] auto a, [[maybe_unused]] auto b, auto best) {
    if constexpr (kIsFloat<T>) {
      best = a != a ? a : best;
      best = b != b ? b : best;
    }
    return best;
  };
  if (op == Op::max) {
    return fold_inputs<T>(sums, inputs, count, offset, bytes,
                          [&](auto a, auto b) { return unless_nan(a, b, b > a ? b : a); });
  }
  if (op == Op::min) {
    return fold_inputs<T>(sums, inputs, count, offset, bytes,
                          [&](auto a, auto b) { return unless_nan(a, b, b < a ? b : a); });
  }
  if constexpr (kIsFloat<T>) {
    fold_inputs<T>(sums, inputs, count, offset, bytes, [](auto a, auto b) { return a + b; });
  } else {
    fold_inputs<Unsigned<T>>(sums, inputs, count, offset, bytes,
                             [](auto a, auto b) { return static_cast<decltype(a)>(a + b); });
  }
}

inline void fold_directly(const Step& step, byte* sums, const byte* const* inputs, unsigned count,
                          size_t offset, size_t bytes) {
  const auto fold = [&]<typename T>(T /*lane*/) {
    fold_lanes<T>(step.op, sums, inputs, count, offset, bytes);
  };
  switch (step.lane) {
  case Lane::f32:
    return fold(float{});
  case Lane::f64:
    return fold(double{});
  case Lane::i16:
    return fold(std::int16_t{});
  case Lane::i32:
    return fold(int32_t{});
  case Lane::u32:
    return fold(uint32_t{});
  case Lane::i64:
    return fold(std::int64_t{});
  case Lane::u64:
    return fold(uint64_t{});
  }
}

inline void run_steps(const Step* steps, size_t count, Tile& tile) {
  for (size_t i = 0; i < count; ++i) {
    run_step(steps[i], tile);
  }
}

} // namespace

} // namespace weir::program
