// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "violation.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

namespace weir::fabric {

inline constexpr std::size_t kMaxFrameBytes = 768;

/// The sender of a packet.
struct Origin {
  enum class Kind : std::uint8_t { stranger, member, stream };
  Kind kind = Kind::stranger;
  std::uint16_t ring = 0;       // member: index; stream: its number
  std::uint16_t rank = 0;       // member
  std::uint32_t generation = 0; // member
};

/// A frame on a link or in the switch.
struct Packet : frame::Frame {
  enum class Place : std::uint8_t { free, on_link, in_switch };

  Place place = Place::free;
  Origin origin;
  bool is_damaged = false;
  // Packets of its stream or connection that came to the switch before it.
  std::uint64_t arrival = 0;
  std::array<std::uint8_t, kMaxFrameBytes> storage{};
  std::array<std::uint8_t, kMaxFrameBytes> original{}; // its bytes when it came to the switch

  std::span<std::uint8_t> room() { return storage; }
};

/// Packets in blocks that are used again. A packet in the wrong place is a violation.
class PacketPool {
 public:
  Packet& make() {
    if (free_.empty()) {
      free_.push_back(&packets_.emplace_back());
    }
    Packet& packet = *free_.back();
    free_.pop_back();
    static_cast<frame::Frame&>(packet) = {};
    packet.data = packet.storage.data();
    packet.place = Packet::Place::on_link;
    packet.origin = {};
    packet.is_damaged = false;
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
    packet.ingress = source.ingress;
    packet.origin = source.origin;
    packet.is_damaged = source.is_damaged;
    return packet;
  }

  void free(Packet& packet) {
    if (packet.place == Packet::Place::free) {
      throw Violation("I6", "a packet was freed twice");
    }
    packet.place = Packet::Place::free;
    free_.push_back(&packet);
  }

  void move(Packet& packet, Packet::Place from, Packet::Place to) {
    if (packet.place != from) {
      throw Violation("I6", "a packet that the switch does not own passed through its sink");
    }
    packet.place = to;
    in_switch_ += to == Packet::Place::in_switch ? 1 : 0;
    in_switch_ -= from == Packet::Place::in_switch ? 1 : 0;
  }

  /// Frames that are in the switch.
  std::uint64_t in_switch() const { return in_switch_; }

 private:
  std::deque<Packet> packets_;
  std::vector<Packet*> free_;
  std::uint64_t in_switch_ = 0;
};

} // namespace weir::fabric
