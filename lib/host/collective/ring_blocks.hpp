// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::host {

/// How Algorithm::ring gets the same bits as the switch: folds may start at any rank where the
/// order cannot matter, and start at rank 0 where it can.
enum class RingSchedule : std::uint8_t {
  reduce_scatter, // 2(H-1)/H of the tensor on every link
  chain,          // twice the tensor on most links; more for sums of f16, bf16 and f8
};

/// reduce_scatter for integers, chain for floating point.
RingSchedule ring_schedule(DataType type);
/// "reduce-scatter" or "chain".
std::string_view name_of(RingSchedule schedule);

/// The type in which partial results travel: f32 where the result is rounded from f32.
DataType partial_type(DataType type, Operation operation);

/// How a tensor is cut into blocks for the ring. All blocks but the last have equal length, and
/// each fits in a message. If every rank starts some blocks, all start the same number.
class RingBlocks {
 public:
  /// A block's place and bytes in the tensor, and the bytes of its partial result.
  struct Piece {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::size_t partial_bytes = 0;
  };

  RingBlocks() = default;
  /// `tensor_bytes` are whole elements. `data_bytes`, a multiple of 8, is the capacity of a
  /// message.
  RingBlocks(std::size_t tensor_bytes, DataType type, Operation operation, std::uint16_t world,
             std::size_t data_bytes);

  std::uint64_t count() const { return count_; }

  /// The rank where the fold of block `index` starts.
  std::uint16_t starter(std::uint64_t index) const;

  Piece piece(std::uint64_t index) const;

 private:
  std::size_t tensor_bytes_ = 0;
  std::size_t block_bytes_ = 1;
  std::size_t widening_ = 1; // bytes of partial per byte of tensor
  std::uint64_t count_ = 0;
  std::uint16_t starters_ = 1; // ranks that start folds, in turn
};

} // namespace weir::host
