// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/exchange_series.hpp"
#include "host/collective/scaling.hpp"
#include "host/collective/sparse_input.hpp"
#include "host/collective/sparse_outcome.hpp"
#include "host/collective/sparse_packing.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weir::host {

/// A sparse all-reduce: the ranks sum how many granules they have, so all make the same choice; OR
/// bitmaps of their blocks; and reduce the blocks that are in the union. Every element is the bits
/// of the dense all-reduce of tensors that are 0 (all bits 0) where a rank has no unit.
class SparseAllReduce : public ExchangeSeries {
 public:
  /// `call` has the tensor's count and block. Throws std::invalid_argument as SparseInput does.
  SparseAllReduce(const Call& call, std::uint16_t world, const SparseTensor& tensor,
                  const std::optional<Factor>& factor);

  Exchange current() override;

  bool is_last() const override { return stage_ == Stage::reducing; }

  Step advance() override;

  const std::shared_ptr<SparseOutcome>& outcome() const { return outcome_; }

 private:
  enum class Stage : std::uint8_t { counting, marking_words, marking_blocks, reducing };

  void exchange_bits(Stage stage, std::vector<std::uint64_t> bits);
  void begin_marking();
  void mark_touched_words();
  void reduce(std::vector<std::int64_t> blocks);
  void finish();
  bool all_call_the_same() const;

  const Call call_;
  const std::uint16_t world_;
  const std::uint64_t unit_; // elements
  const SparseInput input_;
  Stage stage_ = Stage::counting;
  BlockLayout layout_;
  std::vector<std::uint64_t> words_;        // what travels, but for blocks
  std::vector<std::int64_t> touched_words_; // of the bitmap, with two levels
  SparseResult result_;                     // as far as it is known
  const std::shared_ptr<SparseOutcome> outcome_ = std::make_shared<SparseOutcome>();
};

} // namespace weir::host
