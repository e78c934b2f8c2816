// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "network/packet_pool.hpp"
#include "violation.hpp"

#include <array>
#include <cstdint>

namespace weir::fabric {

inline constexpr std::size_t kMaxFrameBytes = 768;

/// The sender of a packet.
struct Origin {
  enum class Kind : std::uint8_t { stranger, member, stream, own }; // own: the switch's
  Kind kind = Kind::stranger;
  std::uint16_t ring = 0;       // member: index; stream: its number
  std::uint16_t rank = 0;       // member
  std::uint32_t generation = 0; // member
};

/// A frame on its way, on a link or in the switch.
struct Packet : network::Packet {
  enum class Place : std::uint8_t { free, on_link, in_switch };

  using network::Packet::Packet;

  void reset() {
    network::Packet::reset();
    place = Place::on_link;
    origin = {};
    is_damaged = false;
    visited = 0;
  }

  /// As a port gives it to a switch: nothing is known of it but its bytes.
  void become_new() {
    const std::uint32_t bytes = length;
    static_cast<frame::Frame&>(*this) = {};
    data = storage.data();
    length = bytes;
  }

  void become_twin_of(const Packet& other) {
    network::Packet::become_twin_of(other);
    origin = other.origin;
    is_damaged = other.is_damaged;
    visited = other.visited;
  }

  Place place = Place::free;
  Origin origin;
  bool is_damaged = false;
  std::uint16_t visited = 0; // a set of switches
  std::uint64_t arrival = 0; // how many of its stream or connection came to the switch before it
  std::array<std::uint8_t, kMaxFrameBytes> original{}; // as it came to the switch
};

/// A packet that is not where it should be is a violation.
class PacketPool : public network::PacketPool<Packet> {
 public:
  PacketPool() : network::PacketPool<Packet>(kMaxFrameBytes) {}

  void free(Packet& packet) {
    if (packet.place == Packet::Place::free) {
      throw Violation("I6", "a packet was freed twice");
    }
    packet.place = Packet::Place::free;
    network::PacketPool<Packet>::free(packet);
  }

  static void move(Packet& packet, Packet::Place from, Packet::Place to) {
    if (packet.place != from) {
      throw Violation("I6", "a packet that the switch does not own passed through its sink");
    }
    packet.place = to;
  }
};

} // namespace weir::fabric
