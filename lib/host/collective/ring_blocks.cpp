// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/ring_blocks.hpp"

#include <algorithm>
#include <cassert>

namespace weir::host {
namespace {

bool is_integer(DataType type) {
  switch (type) {
  case DataType::f32:
  case DataType::f64:
  case DataType::f16:
  case DataType::bf16:
  case DataType::f8e4m3:
  case DataType::f8e5m2:
    return false;
  default:
    return true;
  }
}

template <typename Number>
Number divided_up(Number dividend, Number divisor) {
  return (dividend + divisor - 1) / divisor;
}

} // namespace

RingSchedule ring_schedule(DataType type) {
  return is_integer(type) ? RingSchedule::reduce_scatter : RingSchedule::chain;
}

std::string_view name_of(RingSchedule schedule) {
  return schedule == RingSchedule::reduce_scatter ? "reduce-scatter" : "chain";
}

DataType partial_type(DataType type, Operation operation) {
  const bool rounds = operation == Operation::sum || operation == Operation::product;
  const bool is_narrow = !is_integer(type) && element_size(type) < element_size(DataType::f32);
  return rounds && is_narrow ? DataType::f32 : type;
}

RingBlocks::RingBlocks(std::size_t tensor_bytes, DataType type, Operation operation,
                       std::uint16_t world, std::size_t data_bytes)
    : tensor_bytes_(tensor_bytes),
      widening_(element_size(partial_type(type, operation)) / element_size(type)),
      starters_(ring_schedule(type) == RingSchedule::reduce_scatter ? world : 1) {
  const std::size_t element = element_size(type);
  const std::size_t elements = tensor_bytes / element;
  const std::size_t most = data_bytes / (element * widening_);
  assert(most != 0);
  const std::size_t least_blocks = divided_up(elements, most);
  const std::size_t blocks = divided_up<std::size_t>(least_blocks, starters_) * starters_;
  const std::size_t block_elements = divided_up(elements, std::max<std::size_t>(blocks, 1));
  block_bytes_ = std::max<std::size_t>(block_elements, 1) * element;
  count_ = divided_up(tensor_bytes, block_bytes_);
}

std::uint16_t RingBlocks::starter(std::uint64_t index) const {
  return static_cast<std::uint16_t>(index % starters_);
}

RingBlocks::Piece RingBlocks::piece(std::uint64_t index) const {
  assert(index < count_);
  const std::size_t offset = index * block_bytes_;
  const std::size_t bytes = std::min(block_bytes_, tensor_bytes_ - offset);
  return {offset, bytes, bytes * widening_};
}

} // namespace weir::host
