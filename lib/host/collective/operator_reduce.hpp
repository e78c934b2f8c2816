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

/// A reduction by an operator that no switch folds: each rank gets all ranks' data, some messages
/// of a share at a time, and folds what it keeps of them itself, with the bits that a switch would
/// give. With each piece goes the operator's digest: no rank folds by another one.
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

  bool is_last() const override {
    return share_ + 1u == shares_ && offset_ + piece_ >= call_.count;
  }

  /// Throws Error (mismatch) about the first rank with another digest.
  Step advance() override;

 private:
  std::uint8_t* gathered(std::size_t rank) { return gathered_.data() + rank * stride(); }

  std::size_t stride() const { return sizeof(program::Digest) + piece_; }

  bool keeps_share() const;
  void begin_piece();
  void go_on();
  void compare_digests();
  void fold();

  const Call call_;
  const Place place_;
  const Tensor tensor_;
  const std::shared_ptr<const program::Operator> by_;
  const program::TensorLayout layout_;
  const std::size_t most_;     // bytes of a piece, whole messages
  const std::uint16_t shares_; // tensors that each rank brings, of call_.count bytes
  std::uint16_t share_ = 0;
  std::size_t offset_ = 0; // in the share
  std::size_t piece_ = 0;
  std::vector<std::uint8_t> gathered_; // by rank: digest, then data
};

} // namespace weir::host
