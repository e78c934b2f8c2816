// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Copies of one result to many places. Part of kernel_impl.hpp.

#include "op/kernel_vectors.hpp"

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

/// Copies kColumns vectors from byte `at`, which are read once.
template <unsigned kColumns>
[[gnu::always_inline]] inline void spread_columns(std::byte* const* outputs, unsigned count,
                                                  const std::byte* from, std::size_t at) {
  using Bytes = Vector<std::uint8_t>;
  Bytes columns[kColumns];
  for (unsigned column = 0; column < kColumns; ++column) {
    columns[column] = load<Bytes>(from + at + column * kVectorBytes);
  }
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned column = 0; column < kColumns; ++column) {
      store(outputs[i] + at + column * kVectorBytes, columns[column]);
    }
  }
}

/// The first byte behind the first vector's beginning from which stores to this output are aligned.
/// Packets of one length that came in buffers of one kind are all aligned alike.
[[gnu::always_inline]] inline std::size_t first_aligned(const std::byte* output) {
  return -reinterpret_cast<std::uintptr_t>(output) % kVectorBytes;
}

/// The SpreadKernel. What lies before the first and behind the last whole aligned vector is copied
/// as a vector that overlaps it: some bytes are written twice.
void spread(std::byte* const* outputs, unsigned count, const std::byte* from, std::size_t bytes) {
  if (bytes < kVectorBytes) {
    for (unsigned i = 0; i < count; ++i) {
      __builtin_memcpy(outputs[i], from, bytes);
    }
    return;
  }
  constexpr unsigned kColumns = 4;
  spread_columns<1>(outputs, count, from, 0);
  std::size_t at = first_aligned(outputs[0]);
  for (; bytes - at >= kColumns * kVectorBytes; at += kColumns * kVectorBytes) {
    spread_columns<kColumns>(outputs, count, from, at);
  }
  for (; bytes - at >= kVectorBytes; at += kVectorBytes) {
    spread_columns<1>(outputs, count, from, at);
  }
  spread_columns<1>(outputs, count, from, bytes - kVectorBytes);
}

} // namespace

} // namespace weir::op
