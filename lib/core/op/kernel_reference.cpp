// SPDX-License-Identifier: BSD-3-Clause

/// The kernels in the simplest form: one element at a time; numbers are split and joined with ldexp
/// and frexp. Shares no line with the fast kernels.

#include "op/kernel.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace weir::op {

namespace {

// ---- Elements: how one lies in memory (Stored) and what it is computed in (Number). ----

template <typename T>
struct Native {
  using Stored = T;
  using Number = T;

  static Number number_of(Stored stored) { return stored; }

  static Stored stored_of(Number number) { return number; }
};

/// bfloat16: the upper half of an f32. Reading it is exact; writing it chooses between two
/// neighbours.
struct Bfloat16 {
  using Stored = std::uint16_t;
  using Number = float;

  static Number number_of(Stored stored) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16);
  }

  static Stored stored_of(Number number) {
    const auto bits = std::bit_cast<std::uint32_t>(number);
    const auto below = static_cast<Stored>(bits >> 16);
    if (!std::isfinite(number)) {
      return below; // infinity, or the canonical NaN, whose lower half is zero
    }
    const std::uint32_t dropped = bits & 0xffffU;
    const bool up = dropped > 0x8000U || (dropped == 0x8000U && below % 2 == 1);
    return static_cast<Stored>(up ? below + 1 : below);
  }
};

/// The parameters of a narrow format. `has_infinity` is false for OCP's E4M3: its all-ones exponent
/// is an ordinary one, except for the code of all ones.
struct Layout {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  constexpr unsigned sign() const { return 1U << (exponent_bits + mantissa_bits); }

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }

  constexpr unsigned infinity() const { return ((1U << exponent_bits) - 1) << mantissa_bits; }

  constexpr unsigned nan() const {
    return has_infinity ? infinity() | (1U << (mantissa_bits - 1)) : sign() - 1;
  }

  constexpr bool is_nan(unsigned magnitude) const {
    return has_infinity ? magnitude > infinity() : magnitude == nan();
  }

  /// The code after the largest finite number's.
  constexpr unsigned first_special() const { return has_infinity ? infinity() : nan(); }
};

double magnitude_of(const Layout& layout, unsigned code) {
  if (layout.is_nan(code)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (code >= layout.first_special()) {
    return std::numeric_limits<double>::infinity();
  }
  const int exponent = static_cast<int>(code >> layout.mantissa_bits);
  const int fraction = static_cast<int>(code % (1U << layout.mantissa_bits));
  if (exponent == 0) {
    return std::ldexp(fraction, 1 - layout.bias() - layout.mantissa_bits);
  }
  return std::ldexp(fraction + (1 << layout.mantissa_bits),
                    exponent - layout.bias() - layout.mantissa_bits);
}

/// The code of a finite magnitude, rounded to nearest even. It may be above the largest finite one.
unsigned rounded_code(const Layout& layout, double magnitude) {
  const int smallest = 1 - layout.bias();
  int exponent = smallest;
  if (magnitude >= std::ldexp(1.0, smallest)) {
    std::frexp(magnitude, &exponent);
    --exponent; // frexp's fraction lies in [0.5, 1)
  }
  const double units = std::nearbyint(std::ldexp(magnitude, layout.mantissa_bits - exponent));
  // Consecutive numbers have consecutive codes, also when rounding reaches the next power of two.
  const int binade_start = (exponent - smallest) * (1 << layout.mantissa_bits);
  return static_cast<unsigned>(binade_start + static_cast<int>(units));
}

unsigned code_of(const Layout& layout, float number) {
  if (std::isnan(number)) {
    return layout.nan();
  }
  const double magnitude = std::fabs(static_cast<double>(number));
  unsigned code = layout.first_special();
  if (std::isfinite(number)) {
    code = std::min(code, rounded_code(layout, magnitude));
  }
  if (layout.is_nan(code)) {
    return layout.nan();
  }
  return std::signbit(number) ? code | layout.sign() : code;
}

template <typename Code, Layout kLayout>
struct Small {
  using Stored = Code;
  using Number = float;

  static Number number_of(Stored stored) {
    const double magnitude = magnitude_of(kLayout, stored % kLayout.sign());
    return static_cast<float>(stored >= kLayout.sign() ? -magnitude : magnitude);
  }

  static Stored stored_of(Number number) { return static_cast<Stored>(code_of(kLayout, number)); }
};

using Float16 = Small<std::uint16_t, Layout{5, 10, true}>;
using Float8E4m3 = Small<std::uint8_t, Layout{4, 3, false}>;
using Float8E5m2 = Small<std::uint8_t, Layout{5, 2, true}>;

// ---- Operations on two numbers. ----

/// Integers are computed in uint64_t: its overflow is defined, and its lower bits are those of any
/// narrower integer.
template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, T, std::uint64_t>;

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value);
  } else {
    return false;
  }
}

template <Operation kOperation, typename T>
T combine(T left, T right) {
  if constexpr (kOperation == Operation::sum) {
    return static_cast<T>(static_cast<Wide<T>>(left) + static_cast<Wide<T>>(right));
  } else if constexpr (kOperation == Operation::product) {
    return static_cast<T>(static_cast<Wide<T>>(left) * static_cast<Wide<T>>(right));
  } else if constexpr (kOperation == Operation::bitwise_and) {
    return static_cast<T>(left & right);
  } else if constexpr (kOperation == Operation::bitwise_or) {
    return static_cast<T>(left | right);
  } else if constexpr (kOperation == Operation::bitwise_xor) {
    return static_cast<T>(left ^ right);
  } else {
    if (is_nan(left)) {
      return left;
    }
    if (is_nan(right)) {
      return right;
    }
    const bool take = kOperation == Operation::min ? right < left : right > left;
    return take ? right : left;
  }
}

template <typename T>
T canonical(T value) {
  return is_nan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

// ---- The kernel. ----

template <typename Element>
typename Element::Number element_at(const std::byte* from) {
  typename Element::Stored stored;
  std::memcpy(&stored, from, sizeof stored);
  return Element::number_of(stored);
}

template <typename Element, Operation kOperation>
void reduce(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
            Copies copies) {
  using Stored = typename Element::Stored;
  for (std::size_t at = 0; at < bytes; at += sizeof(Stored)) {
    auto result = element_at<Element>(inputs[0] + at);
    for (unsigned i = 1; i < count; ++i) {
      result = combine<kOperation>(result, element_at<Element>(inputs[i] + at));
    }
    const Stored stored = Element::stored_of(canonical(result));
    std::memcpy(out + at, &stored, sizeof stored);
  }
  for (unsigned i = 0; i < copies.count; ++i) {
    std::memcpy(copies.to[i], out, bytes);
  }
}

/// nullptr if the operation is for integers alone, and the element is none.
template <typename Element>
ReduceKernel reference_of(Operation operation) {
  constexpr bool integers = std::is_integral_v<typename Element::Number>;
  constexpr bool any_type = true;
  switch (operation) {
#define X(operation, name, elements, ...)                                                          \
  case Operation::operation:                                                                       \
    if constexpr (elements) {                                                                      \
      return reduce<Element, Operation::operation>;                                                \
    }                                                                                              \
    return nullptr;
    WEIR_OPERATIONS(X)
#undef X
  }
  return nullptr;
}

} // namespace

ReduceKernel reference_kernel(DataType type, Operation operation) {
  switch (type) {
  case DataType::f32:
    return reference_of<Native<float>>(operation);
  case DataType::f64:
    return reference_of<Native<double>>(operation);
  case DataType::f16:
    return reference_of<Float16>(operation);
  case DataType::bf16:
    return reference_of<Bfloat16>(operation);
  case DataType::f8e4m3:
    return reference_of<Float8E4m3>(operation);
  case DataType::f8e5m2:
    return reference_of<Float8E5m2>(operation);
  case DataType::i8:
    return reference_of<Native<std::int8_t>>(operation);
  case DataType::u8:
    return reference_of<Native<std::uint8_t>>(operation);
  case DataType::i16:
    return reference_of<Native<std::int16_t>>(operation);
  case DataType::u16:
    return reference_of<Native<std::uint16_t>>(operation);
  case DataType::i32:
    return reference_of<Native<std::int32_t>>(operation);
  case DataType::u32:
    return reference_of<Native<std::uint32_t>>(operation);
  case DataType::i64:
    return reference_of<Native<std::int64_t>>(operation);
  case DataType::u64:
    return reference_of<Native<std::uint64_t>>(operation);
  }
  return nullptr;
}

} // namespace weir::op
