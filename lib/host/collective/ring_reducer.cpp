// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/ring_reducer.hpp"

#include "host/base/error.hpp"
#include "op/float_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

namespace weir::host {
namespace {

const std::byte* as_bytes(const std::uint8_t* data) {
  return reinterpret_cast<const std::byte*>(data);
}

std::byte* as_bytes(std::uint8_t* data) {
  return reinterpret_cast<std::byte*>(data);
}

} // namespace

RingReducer::RingReducer(const RingReducerConfig& config)
    : config_(config), blocks_(std::size_t{config.slots / 4} * 2), headers_(config.slots),
      widened_(config.data_bytes), folded_(config.data_bytes) {
  assert(blocks_.size() >= 2);
  for (Block& block : blocks_) {
    block.partial.reserve(config.data_bytes);
  }
}

void RingReducer::begin(const Slice& slice) {
  assert(is_idle());
  const op::CpuLevel level = op::best_cpu_level();
  const DataType partial = partial_type(slice.type, slice.operation);
  slice_ = slice;
  bytes_done_ = 0;
  reduce_ = op::find_kernel(partial, slice.operation, level);
  conversions_ =
      partial == slice.type ? op::Conversions{} : op::find_conversions(slice.type, level);
  plan_ = RingBlocks(slice.bytes(), slice.type, slice.operation, config_.world, config_.data_bytes);
  first_ = end_;
  end_ = first_ + plan_.count();
  for (std::uint64_t number = first_; number < first_ + window(); ++number) {
    join_if_due(number);
  }
}

std::uint16_t RingReducer::place(std::uint64_t number) const {
  return static_cast<std::uint16_t>(
      (config_.rank + config_.world - plan_.starter(number - first_)) % config_.world);
}

// ---------------------------------------------------------------------------------------- folding

void RingReducer::join_if_due(std::uint64_t number) {
  if (number >= end_ || number >= finished_ + window()) {
    return;
  }
  const op::DefaultFloatEnvironment environment; // not the caller's (I8)
  const Stage stage = block(number).stage;
  if (stage == Stage::waiting && place(number) == 0) {
    start_fold(number);
  } else if (stage == Stage::held) {
    fold_ours(number);
  }
}

void RingReducer::start_fold(std::uint64_t number) {
  Block& block = this->block(number);
  block.stage = Stage::joined;
  if (conversions_.to_f32 != nullptr) {
    const auto wide = ours(number);
    block.partial.assign(wide.begin(), wide.end());
  }
  send(number, RingContent::partial);
}

void RingReducer::fold_ours(std::uint64_t number) {
  Block& block = this->block(number);
  const std::size_t bytes = piece(number).partial_bytes;
  check_call(block.call);
  expect_due("partials", 1, place(number) == 0 ? 0 : 1);
  expect_due("bytes", block.partial.size(), bytes);
  const std::array<const std::byte*, 2> pair{as_bytes(block.partial.data()),
                                             as_bytes(ours(number).data())};
  folded_.resize(bytes);
  reduce_(as_bytes(folded_.data()), pair.data(), pair.size(), bytes, {});
  std::swap(folded_, block.partial);
  block.stage = Stage::joined;
  if (is_last(number)) {
    put_result(number, block.partial);
    send(number, RingContent::result);
  } else {
    send(number, RingContent::partial);
  }
}

/// Our data of the block, in the type of partials. Valid until the next call.
std::span<const std::uint8_t> RingReducer::ours(std::uint64_t number) {
  const RingBlocks::Piece piece = this->piece(number);
  const std::uint8_t* data = slice_.in + piece.offset;
  if (conversions_.to_f32 == nullptr) {
    return {data, piece.bytes};
  }
  widened_.resize(piece.partial_bytes);
  conversions_.to_f32(as_bytes(widened_.data()), as_bytes(data),
                      piece.partial_bytes / element_size(DataType::f32));
  return widened_;
}

/// Writes the last rank's partial to the tensor, rounded where needed.
void RingReducer::put_result(std::uint64_t number, std::span<const std::uint8_t> result) {
  const RingBlocks::Piece piece = this->piece(number);
  std::uint8_t* const out = slice_.out + piece.offset;
  if (conversions_.from_f32 != nullptr) {
    conversions_.from_f32(as_bytes(out), as_bytes(result.data()),
                          piece.partial_bytes / element_size(DataType::f32));
  } else {
    std::memcpy(out, result.data(), piece.bytes);
  }
  block(number).stage = Stage::done;
  bytes_done_ += piece.bytes;
}

// ---------------------------------------------------------------------------------------- sending

void RingReducer::send(std::uint64_t number, RingContent content) {
  ready_.push_back({number, content});
  ++block(number).unacknowledged;
}

std::optional<OutgoingMessage> RingReducer::next() {
  if (ready_.empty()) {
    return std::nullopt;
  }
  const Departure departure = ready_.front();
  ready_.pop_front();
  return write(departure);
}

/// A fold's first partial is the tensor itself. When a result overwrites it in place, the successor
/// has it already and will ignore a repeat.
void RingReducer::add_data(OutgoingMessage& message, const Departure& departure) {
  const RingBlocks::Piece piece = this->piece(departure.block);
  if (departure.content == RingContent::result) {
    message.data = {slice_.out + piece.offset, piece.bytes};
    message.data_owner = slice_.out_owner;
  } else if (place(departure.block) == 0 && conversions_.to_f32 == nullptr) {
    message.data = {slice_.in + piece.offset, piece.bytes};
    message.data_owner = slice_.in_owner;
  } else {
    message.data = block(departure.block).partial;
  }
}

OutgoingMessage RingReducer::write(const Departure& departure) {
  assert(under_way_.size() < headers_.size());
  OutgoingMessage message{.number = next_message_++};
  add_data(message, departure);
  RingHeader& header = headers_[message.number % headers_.size()];
  header = {};
  header.magic.set(kRingMagic);
  header.ring_id.set(config_.ring);
  header.epoch.set(config_.epoch);
  header.content.set(static_cast<std::uint16_t>(departure.content));
  header.block.set(departure.block);
  header.bytes.set(static_cast<std::uint32_t>(message.data.size()));
  header.call = encode(slice_.call);
  under_way_.push_back(departure.block);
  message.header = {reinterpret_cast<const std::uint8_t*>(&header), sizeof(header)};
  return message;
}

void RingReducer::complete() {
  assert(!under_way_.empty() && block(under_way_.front()).unacknowledged != 0);
  --block(under_way_.front()).unacknowledged;
  under_way_.pop_front();
  retire();
}

// -------------------------------------------------------------------------------------- receiving

void RingReducer::accept(const IncomingMessage& message) {
  RingHeader header{};
  std::memcpy(&header, message.header.data(), message.header.size());
  check(header, message.immediate, message.size());
  if (static_cast<RingContent>(header.content.get()) == RingContent::partial) {
    take_partial(header, message.data);
  } else {
    take_result(header, message.data);
  }
  ++next_arrival_;
}

std::uint16_t RingReducer::predecessor() const {
  return static_cast<std::uint16_t>((config_.rank + config_.world - 1u) % config_.world);
}

void RingReducer::expect_due(std::string_view field, std::uint64_t have, std::uint64_t want) const {
  if (have != want) {
    throw Error(ErrorCode::transport_failure, predecessor(),
                fmt::format("ring {}: message {} from rank {}: found {} {}; due is {}",
                            config_.ring, next_arrival_, predecessor(), field, have, want));
  }
}

void RingReducer::check_call(const CallBody& theirs) const {
  const Call& ours = slice_.call;
  if (const Call call = decode(theirs, ours.sequence); call != ours) {
    throw Error(ErrorCode::mismatch, predecessor(),
                fmt::format("call {}: rank {} calls {}; rank {} calls {}", ours.sequence,
                            predecessor(), host::describe(call), config_.rank,
                            host::describe(ours)));
  }
}

void RingReducer::check(const RingHeader& header, std::uint32_t immediate,
                        std::size_t message_bytes) const {
  const std::uint64_t block = header.block.get();
  const std::uint16_t content = header.content.get();
  const std::uint32_t bytes = header.bytes.get();
  expect_due("magic", header.magic.get(), kRingMagic);
  expect_due("immediate", immediate, static_cast<std::uint32_t>(next_arrival_));
  expect_due("ring", header.ring_id.get(), config_.ring);
  expect_due("epoch", header.epoch.get(), config_.epoch);
  expect_due("content", content, std::min<std::uint16_t>(content, 1));
  expect_due("block", block,
             std::clamp<std::uint64_t>(block, finished_, finished_ + blocks_.size() - 1));
  expect_due("bytes", bytes, std::min<std::uint64_t>(bytes, config_.data_bytes));
  expect_due("message bytes", message_bytes, sizeof(header) + bytes);
}

/// The block may be of a tensor that we have not begun.
void RingReducer::take_partial(const RingHeader& header, std::span<const std::uint8_t> data) {
  const std::uint64_t number = header.block.get();
  if (number < end_) {
    check_call(header.call);
  }
  Block& block = this->block(number);
  const bool is_due = block.stage == Stage::waiting && (number >= end_ || place(number) != 0);
  expect_due("partials", 1, is_due ? 1 : 0);
  block.partial.assign(data.begin(), data.end());
  block.call = header.call;
  block.stage = Stage::held;
  join_if_due(number);
}

void RingReducer::take_result(const RingHeader& header, std::span<const std::uint8_t> data) {
  const std::uint64_t number = header.block.get();
  const bool is_due = block(number).stage == Stage::joined;
  expect_due("results", 1, is_due ? 1 : 0);
  check_call(header.call);
  const RingBlocks::Piece piece = this->piece(number);
  expect_due("bytes", data.size(), piece.bytes);
  std::memcpy(slice_.out + piece.offset, data.data(), piece.bytes);
  block(number).stage = Stage::done;
  bytes_done_ += piece.bytes;
  if (place(number) + 2u != config_.world) { // else our successor made it
    send(number, RingContent::result);
  }
  retire();
}

void RingReducer::retire() {
  while (finished_ < end_) {
    Block& oldest = block(finished_);
    if (oldest.stage != Stage::done || oldest.unacknowledged != 0) {
      return;
    }
    oldest.stage = Stage::waiting;
    ++finished_;
    join_if_due(finished_ + window() - 1);
  }
}

std::string RingReducer::describe() const {
  return fmt::format("ring {} without a switch: block {} of {} to {} is not finished", config_.ring,
                     finished_, first_, end_);
}

} // namespace weir::host
