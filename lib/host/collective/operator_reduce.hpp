// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/exchange_series.hpp"
#include "host/collective/slice.hpp"
#include "program/operator.hpp"
#include "program/tensor_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::host {

/// An all-reduce or reduce by an operator that no switch folds: each rank gets all ranks' data,
/// some messages at a time, and folds them itself, with the bits that a switch would give. With
/// each piece goes the operator's digest: no rank folds by another one.
///
/// It carries (H - 1) / H of what H ranks bring over each link. Accumulators on a ring would be as
/// wide as the program's lanes, four times MXFP8, twice round: more for up to eight ranks.
class OperatorReduce : public ExchangeSeries {
 public:
  struct Tensor {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
  };

  OperatorReduce(const Call& call, const Place& place, const Tensor& tensor,
                 std::shared_ptr<const program::Operator> by, const program::MessageLayout& layout);

  Exchange current() override;

  bool is_last() const override { return offset_ + piece_ >= call_.count; }

  /// Throws Error (mismatch) about the first rank with another digest.
  Step advance() override;

 private:
  std::uint8_t* gathered(std::size_t rank) { return gathered_.data() + rank * stride(); }

  std::size_t stride() const { return sizeof(program::Digest) + piece_; }

  void begin_piece();
  void compare_digests();
  void fold();

  const Call call_;
  const Place place_;
  const Tensor tensor_;
  const std::shared_ptr<const program::Operator> by_;
  const program::TensorLayout layout_;
  const std::size_t most_; // bytes of a piece, whole messages
  std::size_t offset_ = 0;
  std::size_t piece_ = 0;
  std::vector<std::uint8_t> gathered_; // by rank: digest, then data
};

} // namespace weir::host
