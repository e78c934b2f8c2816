// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How a value joins the accumulator, and what is done once at the end. Part of kernel_impl.hpp.

#include "op/kernel_vectors.hpp"

#include <type_traits>
#include <utility>

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

/// Turns every NaN into the positive quiet NaN without payload. Which of two NaNs an addition keeps
/// depends on the order of its operands, which the compiler may swap.
template <typename T>
[[gnu::always_inline]] inline Vector<T> canonical_nan(Vector<T> value) {
  if constexpr (std::is_floating_point_v<T>) {
    const T nan = std::is_same_v<T, float> ? static_cast<T>(__builtin_nanf("")) : __builtin_nan("");
    return value != value ? Vector<T>{} + nan : value;
  } else {
    return value;
  }
}

/// `right < left ? right : left`, and the same with `>`: exactly minps and maxps, for NaN and zeros
/// too.
template <typename T>
[[gnu::always_inline]] inline Vector<T> lesser(Vector<T> left, Vector<T> right) {
  return right < left ? right : left;
}

template <typename T>
[[gnu::always_inline]] inline Vector<T> greater(Vector<T> left, Vector<T> right) {
  return right > left ? right : left;
}

#if defined(__AVX512BW__)
// Compilers would use compare and move when there are mask registers. The forms with a mask of ones
// avoid _mm512_undefined_*, for which gcc 12 warns (its PR 105593).
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

/// A NaN on the left stays, because all comparisons with it are false. One on the right is tested
/// for.
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

} // namespace

} // namespace weir::op
