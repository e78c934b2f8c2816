// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The vectors of this CPU level. Part of kernel_impl.hpp.

#include <cstddef>
#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

#if defined(__AVX512BW__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

/// Vector registers of accumulators in one pass over the inputs.
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
using SignedShorts = Vector<std::int16_t>;

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

} // namespace

} // namespace weir::op
