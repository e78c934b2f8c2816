// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/scaling.hpp"
#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::host {

inline constexpr std::uint64_t kMostBlock = UINT16_MAX; // a Call's field has 16 bits
// Of a tensor. Their bitmap's words have a bitmap of 128 MiB, which each rank makes.
inline constexpr std::uint64_t kMostUnits = std::uint64_t{1} << 36;

/// One rank's part of a sparse all-reduce, as its caller has it: elements or blocks of a tensor, in
/// any order, perhaps several times.
struct SparseTensor {
  std::uint64_t count = 0; // elements of the whole tensor
  std::uint64_t block = 1; // elements for each index; 0: one, and the ranks choose the blocks
  std::span<const std::int64_t> indices; // in units
  const std::uint8_t* values = nullptr;  // a whole unit for each index

  /// Elements for each index. The tensor's last unit may be shorter.
  std::uint64_t unit() const { return block == 0 ? 1 : block; }
};

/// Units of a tensor, of which the last may be shorter.
constexpr std::uint64_t units_of(std::uint64_t count, std::uint64_t unit) {
  return count / unit + (count % unit == 0 ? 0 : 1);
}

/// The same in ascending order, each unit once. PyTorch calls this coalesced. Keeps the caller's
/// memory if it is so already.
class SparseInput {
 public:
  /// Units that come several times are folded by the operation, in their order. A factor
  /// multiplies every element first. Throws std::invalid_argument for an index that is not in the
  /// tensor, and for memory that is NULL.
  SparseInput(const SparseTensor& tensor, DataType type, Operation operation,
              const std::optional<Factor>& factor);
  SparseInput(const SparseInput&) = delete; // it has pointers to its own memory
  SparseInput& operator=(const SparseInput&) = delete;

  std::span<const std::int64_t> indices() const { return indices_; }

  /// A unit's bytes; `position` counts the indices.
  const std::uint8_t* unit_at(std::size_t position) const {
    return values_ + position * unit_bytes_;
  }

  std::size_t unit_bytes() const { return unit_bytes_; }

 private:
  void merge(DataType type, Operation operation);

  std::size_t unit_bytes_;
  std::span<const std::int64_t> indices_;
  const std::uint8_t* values_;
  std::vector<std::int64_t> own_indices_;
  std::vector<std::uint8_t> own_values_;
};

} // namespace weir::host
