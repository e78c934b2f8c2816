// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include "op/kernel.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace weir::bench {
namespace {

constexpr std::size_t kElement = sizeof(std::int32_t);

void add(std::span<std::uint8_t> sum, std::span<const std::uint8_t> data) {
  const auto kernel = op::reference_kernel(DataType::i32, Operation::sum);
  const std::vector<std::uint8_t> before(sum.begin(), sum.end());
  const std::array inputs{reinterpret_cast<const std::byte*>(before.data()),
                          reinterpret_cast<const std::byte*>(data.data())};
  kernel(reinterpret_cast<std::byte*>(sum.data()), inputs.data(), 2, sum.size(), {});
}

} // namespace

SwitchExchange::SwitchExchange(const host::WindowConfig& config, std::span<std::uint8_t> tensor)
    : reducer_(config), tensor_(tensor) {}

void SwitchExchange::begin(std::uint32_t calls) {
  const std::size_t bytes = tensor_.size() / calls;
  for (std::uint32_t call = 0; call < calls; ++call) {
    std::uint8_t* const part = tensor_.data() + call * bytes;
    reducer_.begin({.type = DataType::i32,
                    .segment_bytes = bytes,
                    .in = part,
                    .out = part,
                    .keep_end = bytes});
  }
}

std::optional<Exchange::Message> SwitchExchange::next() {
  const auto message = reducer_.next();
  return message ? std::optional(Message{message->header, message->data}) : std::nullopt;
}

void SwitchExchange::arrived(std::uint32_t number, std::span<const std::uint8_t> message) {
  reducer_.accept(host::message_in_one_piece(number, message));
}

RingExchange::RingExchange(std::uint16_t rank, std::uint16_t world, std::span<std::uint8_t> tensor,
                           std::uint32_t message_bytes)
    : world_(world), message_bytes_(message_bytes), tensor_(tensor) {
  const auto chunk_of = [&](unsigned step) {
    return static_cast<std::uint16_t>((rank + 2u * world - step) % world);
  };
  const unsigned steps = 2 * (world - 1u);
  for (unsigned step = 0; step < steps; ++step) {
    add_chunk(outgoing_, chunk_of(step));
    add_chunk(incoming_, chunk_of(step + 1));
    first_chunk_ = step == 0 ? outgoing_.size() : first_chunk_;
    to_add_ = step + 1 < world ? incoming_.size() : to_add_;
  }
}

void RingExchange::add_chunk(std::vector<Piece>& pieces, std::uint16_t chunk) const {
  const std::size_t elements = tensor_.size() / kElement;
  const std::size_t end = (chunk + 1u) * elements / world_ * kElement;
  for (std::size_t at = chunk * elements / world_ * kElement; at < end; at += message_bytes_) {
    pieces.push_back({.offset = at, .bytes = std::min<std::size_t>(message_bytes_, end - at)});
  }
}

std::optional<Exchange::Message> RingExchange::next() {
  if (sent_ == outgoing_.size() || sent_ >= first_chunk_ + arrived_) {
    return std::nullopt;
  }
  const Piece& piece = outgoing_[sent_++];
  return Message{{}, tensor_.subspan(piece.offset, piece.bytes)};
}

void RingExchange::arrived(std::uint32_t /*number*/, std::span<const std::uint8_t> message) {
  const Piece& piece = incoming_.at(arrived_);
  if (message.size() != piece.bytes) {
    throw std::logic_error("a message of another length than is due");
  }
  const std::span<std::uint8_t> own = tensor_.subspan(piece.offset, piece.bytes);
  if (arrived_ < to_add_) {
    add(own, message);
  } else {
    std::copy(message.begin(), message.end(), own.begin());
  }
  ++arrived_;
}

} // namespace weir::bench
