// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

namespace weir::network {

/// A frame under way, with its memory.
struct Packet : frame::Frame {
  explicit Packet(std::size_t room) : storage(room) {}

  /// Makes it new and empty.
  void reset() {
    static_cast<frame::Frame&>(*this) = {};
    data = storage.data();
  }

  /// Copies what a duplicate needs besides the bytes.
  void become_twin_of(const Packet& other) {
    ingress = other.ingress;
    traffic = other.traffic;
  }

  std::vector<std::uint8_t> storage;
};

/// Packets for reuse. A PacketType is a Packet; its reset and become_twin_of may do more.
template <class PacketType>
class PacketPool {
 public:
  using Packet = PacketType;

  /// Each packet has `room` bytes.
  explicit PacketPool(std::size_t room) : room_(room) {}

  Packet& make() {
    if (free_.empty()) {
      free_.push_back(&packets_.emplace_back(room_));
    }
    Packet& packet = *free_.back();
    free_.pop_back();
    packet.reset();
    return packet;
  }

  Packet& make(std::span<const std::uint8_t> bytes) {
    Packet& packet = make();
    std::memcpy(packet.data, bytes.data(), bytes.size());
    packet.length = static_cast<std::uint32_t>(bytes.size());
    return packet;
  }

  Packet& copy(const Packet& source) {
    Packet& packet = make(source.bytes());
    packet.become_twin_of(source);
    return packet;
  }

  void free(Packet& packet) { free_.push_back(&packet); }

 private:
  std::size_t room_;
  std::deque<Packet> packets_;
  std::vector<Packet*> free_;
};

} // namespace weir::network
