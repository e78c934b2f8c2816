// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Conversions, one element in each 32-bit lane: part of kernel_impl.hpp.

#include "op/kernel_narrow.hpp"

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

constexpr std::size_t kLanes = kVectorBytes / sizeof(float);

/// The codes of kLanes elements, as in memory.
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

/// The ConvertKernel. The last elements go through a buffer when they do not fill all lanes.
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

} // namespace

} // namespace weir::op
