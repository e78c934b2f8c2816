// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/network.hpp"

#include <cstdint>
#include <vector>

namespace weir::netsim {

using PacketId = std::uint32_t;

/// A packet on links that its sender has chosen. Only the sender knows its content.
struct Packet {
  /// Whether the next packet of its message must use the same virtual channels.
  enum class Follower : std::uint8_t { none, same_channel };

  const Hop* hop = nullptr;  // the link that it is on or waits for
  const Hop* end = nullptr;  // of the route
  Time since = 0;            // when it began to wait for the link
  PacketId next = 0;         // in the FIFO in which it waits
  std::uint32_t bytes = 0;   // on the wire
  std::uint32_t message = 0; // the sender's number of its message
  std::uint32_t step = 0;    // arbitration by step: the smaller goes first
  Follower follower = Follower::none;

  bool is_on_last_hop() const { return hop + 1 == end; }
};

/// Packets by number. Numbers are used again after release.
class PacketPool {
 public:
  PacketId make(const Packet& packet) {
    if (free_.empty()) {
      packets_.push_back(packet);
      return static_cast<PacketId>(packets_.size() - 1);
    }
    const PacketId id = free_.back();
    free_.pop_back();
    packets_[id] = packet;
    return id;
  }

  void release(PacketId id) { free_.push_back(id); }

  Packet& operator[](PacketId id) { return packets_[id]; }

 private:
  std::vector<Packet> packets_;
  std::vector<PacketId> free_;
};

} // namespace weir::netsim
