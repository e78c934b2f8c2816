// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The walk over a payload. Part of kernel_impl.hpp.

#include "op/kernel.hpp"
#include "op/kernel_narrow.hpp"

namespace weir::op {

namespace { // NOLINT(google-build-namespaces,cert-dcl59-cpp): kernel_impl.hpp's comment says why

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
  if constexpr (!takes_any_nan<Codec>) {
    for (auto& part : value.part) {
      part = canonical_nan<typename Codec::Number>(part);
    }
  }
  Codec::encode(to, value);
}

/// Folds kColumns vectors of payload from byte `at`. It reads each input once, keeps the
/// accumulators in registers and writes `out` once.
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

/// Copies kColumns vectors of `out` from byte `at`.
template <unsigned kColumns>
[[gnu::always_inline]] inline void copy_columns(const std::byte* out, Copies copies,
                                                std::size_t at) {
  using Bytes = Vector<std::uint8_t>;
  Bytes columns[kColumns];
  for (unsigned column = 0; column < kColumns; ++column) {
    columns[column] = load<Bytes>(out + at + column * kVectorBytes);
  }
  for (unsigned i = 0; i < copies.count; ++i) {
    for (unsigned column = 0; column < kColumns; ++column) {
      store(copies.to[i] + at + column * kVectorBytes, columns[column]);
    }
  }
}

/// Folds and copies blocks of kColumns vectors while they fit, then of half as many. Less than a
/// vector is left.
template <typename Codec, template <typename> class Fold, unsigned kColumns>
[[gnu::always_inline]] inline void fold_blocks(std::byte* out, const std::byte* const* inputs,
                                               unsigned count, Copies copies, std::size_t at,
                                               std::size_t bytes) {
  constexpr std::size_t kBlockBytes = kColumns * kVectorBytes;
  for (; bytes - at >= kBlockBytes; at += kBlockBytes) {
    fold_columns<Codec, Fold, kColumns>(out, inputs, count, at);
    copy_columns<kColumns>(out, copies, at);
  }
  if constexpr (kColumns > 1) {
    fold_blocks<Codec, Fold, kColumns / 2>(out, inputs, count, copies, at, bytes);
  }
}

template <typename Codec>
[[gnu::always_inline]] inline PartsOf<Codec> decode_short(const std::byte* from,
                                                          std::size_t bytes) {
  std::byte padded[kVectorBytes] = {};
  __builtin_memcpy(padded, from, bytes);
  return Codec::decode(padded);
}

/// Folds a payload shorter than one vector without reading outside it.
template <typename Codec, template <typename> class Fold>
void fold_short(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
                Copies copies) {
  PartsOf<Codec> sum = decode_short<Codec>(inputs[0], bytes);
  for (unsigned i = 1; i < count; ++i) {
    join<Codec, Fold>(sum, decode_short<Codec>(inputs[i], bytes));
  }
  std::byte padded[kVectorBytes];
  finish<Codec>(padded, sum);
  __builtin_memcpy(out, padded, bytes);
  for (unsigned i = 0; i < copies.count; ++i) {
    __builtin_memcpy(copies.to[i], padded, bytes);
  }
}

/// Vectors of all inputs that are folded together: as many as there are registers for.
template <typename Codec>
constexpr unsigned kMostColumns = kAccumulators / Codec::kParts;

/// The same if there are copies: at most two lines. Then the CPU reads some lines while it writes
/// those before them.
template <typename Codec>
constexpr unsigned kColumnsToCopy =
    kMostColumns<Codec> < 128 / kVectorBytes ? kMostColumns<Codec> : 128 / kVectorBytes;

/// The ReduceKernel. If the end of a payload does not fill a vector, the payload's last whole
/// vector is folded as well: some elements are computed twice, with the same result. That comes
/// first, because a copy may overwrite its input.
template <typename Codec, template <typename> class Fold>
void reduce(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
            Copies copies) {
  if (bytes < kVectorBytes) {
    fold_short<Codec, Fold>(out, inputs, count, bytes, copies);
    return;
  }
  const std::size_t last = bytes - kVectorBytes;
  const bool has_rest = bytes % kVectorBytes != 0;
  if (has_rest) {
    fold_columns<Codec, Fold, 1>(out, inputs, count, last);
  }
  if (copies.count == 0) {
    fold_blocks<Codec, Fold, kMostColumns<Codec>>(out, inputs, count, {}, 0, bytes);
  } else {
    fold_blocks<Codec, Fold, kColumnsToCopy<Codec>>(out, inputs, count, copies, 0, bytes);
  }
  if (has_rest) {
    copy_columns<1>(out, copies, last);
  }
}

} // namespace

} // namespace weir::op
