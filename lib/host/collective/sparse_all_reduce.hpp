// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/exchange_series.hpp"
#include "host/collective/scaling.hpp"
#include "host/collective/sparse_choice.hpp"
#include "host/collective/sparse_input.hpp"
#include "host/collective/sparse_packing.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::host {

/// What a sparse all-reduce makes, the same on all ranks.
struct SparseResult {
  std::vector<std::int64_t> indices; // of blocks; they ascend
  std::vector<std::uint8_t> values;  // whole blocks; 0 behind the tensor's end
  std::uint64_t block = 1;           // elements of a block
  SparseForm form = SparseForm::one_level;
  std::uint64_t exchanged_bytes = 0; // of data, up and down this rank's link
};

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

  const Call& call() const { return call_; }

  /// For any thread, which may look at the result once it is true.
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }

  const SparseResult& result() const { return result_; }

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
  SparseResult result_;
  std::atomic<bool> is_done_ = false;
};

} // namespace weir::host
