// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How one more value joins the accumulator, and what is done once at the end: part of
/// kernel_impl.hpp.

#include "op/kernel_vectors.hpp"

#include <type_traits>
#include <utility>

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

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

} // namespace

} // namespace weir::op
