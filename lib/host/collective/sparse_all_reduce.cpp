// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/sparse_all_reduce.hpp"

#include "host/collective/sparse_bitmap.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

namespace weir::host {
namespace {

// The first exchange: what the ranks must have alike, then the counts.
constexpr std::size_t kCountPlace = 0;
constexpr std::size_t kUnitPlace = 1;
constexpr std::size_t kFirstGranule = 2;

} // namespace

SparseAllReduce::SparseAllReduce(const Call& call, std::uint16_t world, const SparseTensor& tensor,
                                 const std::optional<Factor>& factor)
    : call_(call), world_(world), unit_(tensor.unit()),
      input_(tensor, call.type, call.operation, factor), layout_{.tensor_bytes =
                                                                     call.count *
                                                                     element_size(call.type),
                                                                 .unit_bytes =
                                                                     input_.unit_bytes()} {
  words_ = {call.count, call.block};
  const GranuleCounts counts = count_granules(input_.indices());
  words_.insert(words_.end(), counts.begin(), counts.end());
}

Exchange SparseAllReduce::current() {
  Exchange exchange;
  auto* data = reinterpret_cast<std::uint8_t*>(words_.data());
  exchange.call = {.sequence = call_.sequence,
                   .count = words_.size(),
                   .type = DataType::u64,
                   .operation = stage_ == Stage::counting ? Operation::sum : Operation::bitwise_or};
  if (stage_ == Stage::reducing) {
    data = result_.values.data();
    exchange.call.count = layout_.bytes_of(result_.indices) / element_size(call_.type);
    exchange.call.type = call_.type;
    exchange.call.operation = call_.operation;
  }
  exchange.buffers = {
      .in = data, .out = data, .in_owner = Owner::library, .out_owner = Owner::library};
  return exchange;
}

ExchangeSeries::Step SparseAllReduce::advance() {
  if (stage_ == Stage::counting && !all_call_the_same()) {
    return Step::differs;
  }
  const Exchange last = current();
  result_.exchanged_bytes += last.call.count * element_size(last.call.type);
  switch (stage_) {
  case Stage::counting:
    begin_marking();
    break;
  case Stage::marking_words:
    mark_touched_words();
    break;
  case Stage::marking_blocks:
    reduce(touched_words_.empty() ? marked(words_) : marked_in(words_, touched_words_));
    break;
  case Stage::reducing:
    finish();
    return Step::done;
  }
  return Step::next;
}

/// A rank whose values happen to be the others' mean goes on, and finds nobody to go with.
bool SparseAllReduce::all_call_the_same() const {
  assert(stage_ == Stage::counting && words_.size() > kUnitPlace);
  const std::uint64_t ranks = world_;
  return words_[kCountPlace] == ranks * call_.count && words_[kUnitPlace] == ranks * call_.block;
}

void SparseAllReduce::exchange_bits(Stage stage, std::vector<std::uint64_t> bits) {
  stage_ = stage;
  words_ = std::move(bits);
}

void SparseAllReduce::begin_marking() {
  GranuleCounts sums{};
  std::copy_n(words_.begin() + kFirstGranule, sums.size(), sums.begin());
  const SparseChoice choice =
      choose({.units = units_of(call_.count, unit_),
              .unit_bytes = layout_.unit_bytes,
              .world = world_,
              .block_size = call_.block == 0 ? BlockSize::is_free : BlockSize::is_unit},
             sums);
  layout_.shift = choice.shift;
  result_.form = choice.form;
  result_.block = unit_ << choice.shift;
  const std::uint64_t blocks = layout_.blocks();
  switch (choice.form) {
  case SparseForm::dense:
    reduce(all_blocks(layout_));
    break;
  case SparseForm::one_level:
    exchange_bits(Stage::marking_blocks, mark(input_.indices(), choice.shift, blocks));
    break;
  case SparseForm::two_levels:
    exchange_bits(Stage::marking_words,
                  mark(input_.indices(), choice.shift + kWordShift, words_of(blocks)));
    break;
  }
}

void SparseAllReduce::mark_touched_words() {
  touched_words_ = marked(words_);
  exchange_bits(Stage::marking_blocks, mark_words(input_.indices(), layout_.shift, touched_words_));
}

void SparseAllReduce::reduce(std::vector<std::int64_t> blocks) {
  stage_ = Stage::reducing;
  words_ = {};
  touched_words_ = {};
  result_.values = pack(input_, layout_, blocks);
  assert(result_.values.size() >= layout_.bytes_of(blocks)); // whole blocks, also the last one
  result_.indices = std::move(blocks);
}

void SparseAllReduce::finish() {
  if (call_.finish == Finish::average) {
    make_average(result_.values, call_.type, world_);
  }
  outcome_->set(std::move(result_));
}

} // namespace weir::host
