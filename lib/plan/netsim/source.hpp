// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/framing.hpp"
#include "netsim/packet.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>

namespace weir::netsim {

/// A message to send over the network.
struct Transfer {
  const Hop* begin = nullptr; // of its route
  const Hop* end = nullptr;
  std::uint64_t bytes = 0; // payload not sent yet
  std::uint64_t packets = 0;
  std::uint32_t message = 0;
  std::uint32_t step = 0;
};

/// Messages in the order of sending. Packets are made when they leave, so memory does not grow with
/// a message's size.
class Source {
 public:
  explicit Source(const Framing& framing) : framing_(framing) {}

  bool is_empty() const { return transfers_.empty(); }

  /// Packets that have not left.
  std::uint64_t unsent() const { return unsent_; }

  void add(const Transfer& transfer) {
    transfers_.push_back(transfer);
    unsent_ += transfer.packets;
    is_at_head_ = is_at_head_ || transfers_.size() == 1;
  }

  const Transfer& front() const { return transfers_.front(); }

  /// Bytes of the next packet on the wire. The source must not be empty.
  std::uint32_t next_bytes() const {
    const Transfer& transfer = transfers_.front();
    const std::uint64_t packets = packets_of_next();
    const bool has_header = framing_.headers == Framing::Headers::every_packet || is_at_head_;
    const std::uint64_t headers =
        framing_.headers == Framing::Headers::every_packet ? packets : std::uint64_t{has_header};
    return static_cast<std::uint32_t>(framing_.whole_units(payload_of(transfer, packets)) +
                                      headers * framing_.header_bytes);
  }

  Packet take(Time now) {
    Transfer& transfer = transfers_.front();
    Packet packet;
    packet.hop = transfer.begin;
    packet.end = transfer.end;
    packet.since = now;
    packet.bytes = next_bytes();
    packet.message = transfer.message;
    packet.step = transfer.step;
    const std::uint64_t packets = packets_of_next();
    transfer.bytes -= payload_of(transfer, packets);
    transfer.packets -= packets;
    assert(unsent_ >= packets);
    unsent_ -= packets;
    is_at_head_ = transfer.packets == 0;
    if (is_at_head_) {
      transfers_.pop_front();
    } else if (framing_.headers == Framing::Headers::every_message) {
      packet.follower = Packet::Follower::same_channel;
    }
    return packet;
  }

 private:
  std::uint64_t packets_of_next() const {
    const std::uint64_t left = transfers_.front().packets;
    return framing_.packets_at_once == 0 ? left
                                         : std::min<std::uint64_t>(left, framing_.packets_at_once);
  }

  std::uint64_t payload_of(const Transfer& transfer, std::uint64_t packets) const {
    return std::min(transfer.bytes, packets * framing_.payload_bytes);
  }

  const Framing& framing_;
  std::deque<Transfer> transfers_;
  std::uint64_t unsent_ = 0;
  bool is_at_head_ = false; // the next packet is the first of its message
};

} // namespace weir::netsim
