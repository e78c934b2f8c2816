// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Codecs: from kVectorBytes of payload to `kParts` vectors in the type of computation, and back.
/// Elements may be in the parts in any order if decode and encode agree. Part of kernel_impl.hpp.

#include "op/kernel_folds.hpp"

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

template <typename T, unsigned kCount>
struct Parts {
  Vector<T> part[kCount];
};

/// Elements whose own type is the type of computation.
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

/// Bytes for products, two in each 16-bit lane, since no instruction multiplies bytes. A lane's
/// high byte does not change the low byte of a product.
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

/// For min and max of a narrow float: computes on its codes as signed integers of its width, so no
/// conversion is needed. Keys have the order of the values, with one key for both zeros. The
/// largest magnitude tells whether there was a NaN.
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

/// Whether encode takes any NaN. Others need the canonical one.
template <typename Codec>
constexpr bool takes_any_nan = false;

template <typename Code, std::int32_t kLargest, std::int32_t kNan>
constexpr bool is_in_order<InOrder<Code, kLargest, kNan>> = true;

using Float16InOrder = InOrder<std::int16_t, 0x7c00, 0x7e00>;
using Bfloat16InOrder = InOrder<std::int16_t, 0x7f80, 0x7fc0>;
using E4m3InOrder = InOrder<std::int8_t, 0x7e, 0x7f>;
using E5m2InOrder = InOrder<std::int8_t, 0x7c, 0x7e>;

/// bf16 is the upper half of an f32. Part 0 has the even elements, part 1 the odd ones, so that
/// nothing is shuffled.
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
  /// Rounds to nearest even at bit 16. The carry turns the largest values into infinity; a
  /// canonical NaN stays the same.
  [[gnu::always_inline]] static Words rounded(Floats value) {
    const auto bits = reinterpret_cast<Words>(value);
    return bits + 0x7fffU + ((bits >> 16) & 1U);
  }
};

/// The meaning of the all-ones exponent: as in IEEE 754, or (OCP 8-bit formats, "FN") finite except
/// for the code of all ones.
enum class Specials : std::uint8_t { ieee, nan_only };

/// A binary floating-point format narrower than f32, one element in the low bits of each 32-bit
/// lane. Lanes are signed because SSE and AVX2 compare only signed ones; no value here uses the
/// sign bit.
template <unsigned kExponentBits, unsigned kMantissaBits, Specials kSpecials>
struct NarrowFormat {
  static constexpr unsigned kBits = 1 + kExponentBits + kMantissaBits;
  static constexpr unsigned kMantissa = kMantissaBits;
  static constexpr std::int32_t kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::int32_t kRebias = 127 - kBias;

  [[gnu::always_inline]] static Floats decode(Ints code) {
    const Ints magnitude = (code & kMagnitudeMask) << kShift;
    const Ints normal = magnitude + (kRebias << 23);
    // A subnormal and the smallest normal. Unsigned, because bf16's largest codes wrap around.
    const Ints scaled =
        reinterpret_cast<Ints>(reinterpret_cast<Words>(magnitude) + ((kRebias + 1U) << 23));
    const Ints subnormal =
        reinterpret_cast<Ints>(reinterpret_cast<Floats>(scaled) - as_float((kRebias + 1) << 23));
    const Ints finite = magnitude < (1 << 23) ? subnormal : normal;
    const Ints bits = magnitude >= kFirstSpecial ? magnitude | kFloatInfinity : finite;
    return reinterpret_cast<Floats>(bits | ((code & kSignBit) << (32 - kBits)));
  }

  /// Rounds to nearest even. Values that round past the largest finite one become infinity, or NaN
  /// in a format without infinity. A NaN must be canonical.
  [[gnu::always_inline]] static Ints encode(Floats value) {
    const auto bits = reinterpret_cast<Ints>(value);
    const Ints magnitude = bits & 0x7fffffff;
    const Ints normal =
        (magnitude - (kRebias << 23) + ((1 << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1)) >>
        kShift;
    // Adds a number whose last bit has the value of the format's smallest subnormal. So the FPU
    // rounds at that bit.
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

} // namespace

} // namespace weir::op
