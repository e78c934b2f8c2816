// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weir::fabric {

/// A floating-point format narrower than f32, by the arithmetic of its definition: IEEE 754, and
/// OCP's 8-bit formats. Slow and simple.
struct NarrowFloat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  std::uint32_t largest = 0; // code of the largest finite number
  std::uint32_t past = 0;    // code of what rounds past it: infinity, or NaN without a sign
  std::uint32_t nan = 0;     // canonical

  bool has_infinity() const { return past != nan; }

  std::uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }

  float decode(std::uint32_t code) const {
    const std::uint32_t magnitude = code & (sign() - 1);
    const float direction = (code & sign()) != 0 ? -1.0f : 1.0f;
    if (magnitude > largest) {
      const bool is_infinite = has_infinity() && magnitude == past;
      return is_infinite ? direction * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
    }
    const auto exponent = static_cast<int>(magnitude >> mantissa_bits);
    const auto mantissa = static_cast<int>(magnitude & ((1u << mantissa_bits) - 1));
    const int unit = std::max(exponent, 1) - bias() - mantissa_bits;
    const int digits = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    return direction * std::ldexp(static_cast<float>(digits), unit);
  }

  /// To nearest, ties to even.
  std::uint32_t encode(float value) const {
    if (std::isnan(value)) {
      return nan;
    }
    const std::uint32_t negative = std::signbit(value) ? sign() : 0;
    const std::uint32_t magnitude = encode_magnitude(std::fabs(static_cast<double>(value)));
    return magnitude == nan ? nan : magnitude | negative;
  }

 private:
  std::uint32_t encode_magnitude(double value) const {
    if (value == 0) {
      return 0;
    }
    if (std::isinf(value)) {
      return past;
    }
    const int exponent = std::max(std::ilogb(value), 1 - bias());
    const double units = std::nearbyint(std::ldexp(value, mantissa_bits - exponent));
    // Digits that round up to the next power of two carry into the exponent.
    const auto code = (static_cast<std::int64_t>(exponent + bias()) << mantissa_bits) +
                      static_cast<std::int64_t>(units) - (std::int64_t{1} << mantissa_bits);
    return code > largest ? past : static_cast<std::uint32_t>(code);
  }
};

inline constexpr NarrowFloat kF16{5, 10, 0x7bff, 0x7c00, 0x7e00};
inline constexpr NarrowFloat kBf16{8, 7, 0x7f7f, 0x7f80, 0x7fc0};
inline constexpr NarrowFloat kE4m3{4, 3, 0x7e, 0x7f, 0x7f};
inline constexpr NarrowFloat kE5m2{5, 2, 0x7b, 0x7c, 0x7e};

} // namespace weir::fabric
