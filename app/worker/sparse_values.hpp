// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The sparse tensors of weir-worker: those of tensor_values.hpp, of which each rank has some
/// units. Every rank can compute those of all ranks.

#include "host/collective/sparse_all_reduce.hpp"
#include "worker/fold_tree.hpp"
#include "worker/tensor_values.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::app {

struct SparseValues {
  TensorId id;
  host::Call call;    // count, type, operation, finish, block
  double density = 0; // the chance of each unit to be there, for each rank by itself

  std::uint64_t unit() const { return call.block == 0 ? 1 : call.block; }

  std::size_t unit_bytes() const { return unit() * element_size(call.type); }

  std::uint64_t units() const { return host::units_of(call.count, unit()); }

  /// Of the units first, first + 1, …, the rank's: 1 or 0.
  std::vector<bool> presence(std::uint16_t rank, std::uint64_t first, std::size_t units) const;

  std::vector<std::int64_t> indices_of(std::uint16_t rank) const;

  /// Whole units, one after the other.
  std::vector<std::byte> values_of(std::uint16_t rank,
                                   const std::vector<std::int64_t>& indices) const;
};

/// What is wrong with the result: the first wrong element, or a block that is missing or too much.
/// Empty if nothing is. Each element is compared, bit for bit, with what op::reference_kernel makes
/// of dense tensors by the tree.
std::string find_sparse_mismatch(const host::SparseResult& result, const SparseValues& values,
                                 const FoldTree& tree);

} // namespace weir::app
