// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The tensors of weir-worker. Every rank can compute those of all ranks, so each can check its
/// result alone.

#include "host/collective/slice.hpp"
#include "weir/ina.hpp"
#include "worker/fold_tree.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weir::app {

/// Names a tensor. Its values depend only on this, the rank and the element's index.
struct TensorId {
  std::uint32_t epoch = 0;
  std::uint32_t repetition = 0;
};

/// Elements first, first+1, … of `rank`'s tensor, as many as fit into `bytes`.
///
/// mix(x) is the finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, OOPSLA'14), and h = mix(mix(mix(epoch·2^32 + repetition) + rank) + index). An
/// integer is h's low bits. A float has h's lowest bits as mantissa, h's highest bit as sign, and
/// the exponent bias - 2 + (h >> 60 & 3). So 1/4 <= |value| < 4: sums are rounded, products stay
/// finite.
void fill_tensor(std::span<std::byte> bytes, const TensorId& id, std::uint16_t rank,
                 std::uint64_t first, DataType type);

/// What a result has that it should not.
struct Mismatches {
  /// The first wrong element.
  struct First {
    std::uint64_t index = 0;
    std::string expected; // bits in hexadecimal, and the value for f32
    std::string found;
  };

  std::uint64_t count = 0; // wrong elements
  First first;             // if there is one
};

/// Compares every element of a rank's result, bit for bit, with what all ranks' tensors make it:
/// reductions with op::reference_kernel, averages with host::make_average. `trees` has the order of
/// each ring that carries a part of the calls.
Mismatches find_mismatches(std::span<const std::byte> result, const TensorId& id,
                           const host::Call& call, const host::Place& place,
                           std::span<const FoldTree> trees);

} // namespace weir::app
