// SPDX-License-Identifier: BSD-3-Clause
#include "host/ring_reducer.hpp"

#include "weir/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace weir::host {

RingReducer::RingReducer(const RingConfig& config)
    : config_(config), blocks_(std::size_t{config.slots / (config.world - 1u) / 2} * 2),
      headers_(config.slots), next_message_(config.first_message),
      next_arrival_(config.first_message) {
  assert(blocks_.size() >= 2);
  for (Block& block : blocks_) {
    block.data.resize(std::size_t{config.world} * config.block_bytes);
    block.bytes.resize(config.world);
  }
}

void RingReducer::begin(const Slice& slice) {
  assert(is_idle());
  slice_ = slice;
  bytes_done_ = 0;
  reduce_ = agg::find_kernel(slice.type, slice.operation, agg::best_cpu_level());
  first_ = end_;
  end_ = first_ + (slice.bytes + config_.block_bytes - 1) / config_.block_bytes;
}

std::size_t RingReducer::bytes_of_block(std::uint64_t number) const {
  return std::min(config_.block_bytes, slice_.bytes - offset_of(number));
}

std::optional<OutgoingMessage> RingReducer::next() {
  const std::uint64_t window = blocks_.size() / 2;
  if (ready_.empty() && next_ < end_ && next_ < finished_ + window) {
    start_block();
  }
  if (ready_.empty()) {
    return std::nullopt;
  }
  const Contribution contribution = ready_.front();
  ready_.pop_front();
  return write(contribution);
}

/// Ours is copied, since in place the result overwrites it before it is acknowledged.
void RingReducer::start_block() {
  const std::uint64_t number = next_++;
  Block& block = this->block(number);
  const std::size_t bytes = bytes_of_block(number);
  std::memcpy(data_of(block, config_.rank).data(), slice_.in + offset_of(number), bytes);
  block.bytes[config_.rank] = static_cast<std::uint32_t>(bytes);
  block.stage = Stage::started;
  ready_.push_back({number, config_.rank, 0});
  for (const Contribution& early : block.arrived) {
    pass_on(early);
  }
  fold_if_whole(number); // the others' may all have been early
}

/// The rank before its origin is the last to want it.
void RingReducer::pass_on(const Contribution& contribution) {
  if (contribution.hop + 2 < config_.world) {
    ready_.push_back({contribution.block, contribution.origin,
                      static_cast<std::uint16_t>(contribution.hop + 1)});
  }
}

OutgoingMessage RingReducer::write(const Contribution& contribution) {
  Block& block = this->block(contribution.block);
  const std::uint64_t number = next_message_++;
  RingHeader& header = headers_[number % headers_.size()];
  header = {};
  header.magic.set(kRingMagic);
  header.ring_id.set(config_.ring);
  header.epoch.set(config_.epoch);
  header.origin.set(contribution.origin);
  header.hop.set(contribution.hop);
  header.block.set(contribution.block);
  header.bytes.set(block.bytes[contribution.origin]);
  under_way_.push_back(contribution.block);
  return {number,
          {reinterpret_cast<const std::uint8_t*>(&header), sizeof(header)},
          data_of(block, contribution.origin).first(block.bytes[contribution.origin])};
}

void RingReducer::check(const RingHeader& header, std::uint32_t immediate,
                        std::size_t message_bytes) const {
  const auto predecessor =
      static_cast<std::uint16_t>((config_.rank + config_.world - 1u) % config_.world);
  const auto due = [&](std::string_view field, std::uint64_t have, std::uint64_t want) {
    if (have != want) {
      throw Error(ErrorCode::transport_failure, predecessor,
                  fmt::format("ring {}: message {} from rank {}: found {} {}; due is {}",
                              config_.ring, next_arrival_, predecessor, field, have, want));
    }
  };
  const std::uint16_t hop = header.hop.get();
  const std::uint64_t block = header.block.get();
  due("magic", header.magic.get(), kRingMagic);
  due("immediate", immediate, static_cast<std::uint32_t>(next_arrival_));
  due("ring", header.ring_id.get(), config_.ring);
  due("epoch", header.epoch.get(), config_.epoch);
  due("hop", hop, std::min<std::uint16_t>(hop, static_cast<std::uint16_t>(config_.world - 2)));
  due("origin", header.origin.get(), (predecessor + config_.world - hop) % config_.world);
  due("block", block, std::clamp<std::uint64_t>(block, finished_, finished_ + blocks_.size() - 1));
  due("bytes", header.bytes.get(),
      std::min<std::uint64_t>(header.bytes.get(), config_.block_bytes));
  due("message bytes", message_bytes, sizeof(header) + header.bytes.get());
}

void RingReducer::accept(std::uint32_t immediate, std::span<const std::uint8_t> message) {
  RingHeader header{};
  std::memcpy(&header, message.data(), std::min(sizeof(header), message.size()));
  check(header, immediate, message.size());
  ++next_arrival_;
  const Contribution contribution{header.block.get(), header.origin.get(), header.hop.get()};
  Block& block = this->block(contribution.block);
  std::memcpy(data_of(block, contribution.origin).data(), message.data() + sizeof(header),
              header.bytes.get());
  block.bytes[contribution.origin] = header.bytes.get();
  block.arrived.push_back(contribution);
  if (block.stage == Stage::started) {
    pass_on(contribution);
  }
  fold_if_whole(contribution.block);
}

void RingReducer::fold_if_whole(std::uint64_t number) {
  Block& block = this->block(number);
  if (block.stage != Stage::started || block.arrived.size() + 1 < config_.world) {
    return;
  }
  const std::size_t bytes = bytes_of_block(number);
  std::vector<const std::byte*> inputs;
  for (std::uint16_t rank = 0; rank < config_.world; ++rank) {
    if (block.bytes[rank] != bytes) {
      throw Error(ErrorCode::mismatch, rank,
                  fmt::format("ring {}: block {}: rank {} brought {} bytes; due are {}",
                              config_.ring, number, rank, block.bytes[rank], bytes));
    }
    inputs.push_back(reinterpret_cast<const std::byte*>(data_of(block, rank).data()));
  }
  reduce_(reinterpret_cast<std::byte*>(slice_.out + offset_of(number)), inputs.data(),
          config_.world, bytes);
  block.stage = Stage::folded;
  bytes_done_ += bytes;
  retire();
}

void RingReducer::complete() {
  ++block(under_way_.front()).acknowledged;
  under_way_.pop_front();
  retire();
}

void RingReducer::retire() {
  while (finished_ < next_) {
    Block& oldest = block(finished_);
    if (oldest.stage != Stage::folded || oldest.acknowledged + 1u < config_.world) {
      return;
    }
    oldest.stage = Stage::waiting;
    oldest.arrived.clear();
    oldest.acknowledged = 0;
    ++finished_;
  }
}

std::string RingReducer::describe() const {
  return fmt::format("ring {} without a switch: blocks {} to {} under way, of {} to {}",
                     config_.ring, finished_, next_, first_, end_);
}

} // namespace weir::host
