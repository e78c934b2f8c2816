// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/operator_reduce.hpp"

#include "host/base/error.hpp"
#include "op/float_environment.hpp"
#include "program/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::host {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20; // of a rank, about

std::size_t whole_messages(const program::MessageLayout& layout) {
  const std::size_t message = layout.message_data();
  return std::max<std::size_t>(kPieceBytes / message, 1) * message;
}

} // namespace

OperatorReduce::OperatorReduce(const Call& call, const Place& place, const Tensor& tensor,
                               std::shared_ptr<const program::Operator> by,
                               const program::MessageLayout& layout)
    : call_(call), place_(place), tensor_(tensor), by_(std::move(by)),
      layout_(by_->program(), layout), most_(whole_messages(layout)),
      shares_(call.shares(place.world)) {
  begin_piece();
}

void OperatorReduce::begin_piece() {
  piece_ = std::min<std::size_t>(most_, call_.count - offset_);
  gathered_.resize(place_.world * stride());
  std::uint8_t* const own = gathered(place_.rank);
  std::ranges::copy(by_->digest(), own);
  if (piece_ != 0) {
    std::memcpy(own + sizeof(program::Digest), tensor_.in + share_ * call_.count + offset_, piece_);
  }
}

Exchange OperatorReduce::current() {
  Exchange exchange;
  exchange.call = {.sequence = call_.sequence,
                   .kind = CallKind::all_gather,
                   .count = stride(),
                   .type = DataType::u8};
  exchange.buffers = {.in = gathered(place_.rank),
                      .out = gathered_.data(),
                      .in_owner = Owner::library,
                      .out_owner = Owner::library};
  return exchange;
}

ExchangeSeries::Step OperatorReduce::advance() {
  compare_digests();
  const bool was_last = is_last();
  fold();
  if (was_last) {
    return Step::done;
  }
  go_on();
  begin_piece();
  return Step::next;
}

void OperatorReduce::go_on() {
  offset_ += piece_;
  if (offset_ >= call_.count) {
    offset_ = 0;
    ++share_;
  }
}

bool OperatorReduce::keeps_share() const {
  if (call_.row().brings == Amount::share_of_each) {
    return share_ == place_.rank;
  }
  return call_.row().receives == op::Who::everybody || place_.rank == call_.root;
}

void OperatorReduce::compare_digests() {
  for (std::uint16_t rank = 0; rank < place_.world; ++rank) {
    program::Digest theirs{};
    std::copy_n(gathered(rank), theirs.size(), theirs.begin());
    if (theirs != by_->digest()) {
      throw Error(
          ErrorCode::mismatch, rank,
          fmt::format("operator {} ({}): rank {} has digest {}, rank {} has {}: allowed: one "
                      "text, and libraries that give it the same results, on all ranks",
                      static_cast<unsigned>(call_.operation) - kFirstOperator, by_->name(), rank,
                      program::to_string(theirs), place_.rank, program::to_string(by_->digest())));
    }
  }
}

void OperatorReduce::fold() {
  if (!keeps_share() || piece_ == 0) {
    return;
  }
  const op::DefaultFloatEnvironment environment; // not the caller's (I8)
  std::vector<const std::byte*> inputs;
  for (std::uint16_t rank = 0; rank < place_.world; ++rank) {
    inputs.push_back(reinterpret_cast<const std::byte*>(gathered(rank) + sizeof(program::Digest)));
  }
  layout_.reduce(reinterpret_cast<std::byte*>(tensor_.out + offset_), inputs.data(),
                 static_cast<unsigned>(inputs.size()), piece_);
}

} // namespace weir::host
