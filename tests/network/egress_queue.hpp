// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "lcore/tx_arbiter.hpp"

#include <array>
#include <cstddef>
#include <deque>

namespace weir::network {

/// What waits at the switch for a link: a backlog for each class of traffic, as lcore::TxPort has
/// them, with the same arbiter between them.
template <class Packet>
class EgressQueue {
 public:
  static constexpr std::size_t kRingBacklog = 4096; // frames, as lcore::kTxBacklogs
  static constexpr std::size_t kOtherBacklog = 2048;

  bool is_empty() const { return ring_.empty() && other_.empty(); }

  /// False when the backlog of its class is full; the caller keeps the packet.
  bool add(Packet& packet) {
    const bool is_ring = packet.traffic == frame::TrafficClass::ring;
    std::deque<Packet*>& backlog = is_ring ? ring_ : other_;
    if (backlog.size() == (is_ring ? kRingBacklog : kOtherBacklog)) {
      return false;
    }
    backlog.push_back(&packet);
    return true;
  }

  /// The packet whose turn it is. The queue must not be empty.
  Packet& take() {
    const frame::TrafficClass turn = next();
    std::deque<Packet*>& backlog = turn == frame::TrafficClass::ring ? ring_ : other_;
    Packet& packet = *backlog.front();
    if (!ring_.empty() && !other_.empty()) {
      arbiter_.charge(turn, packet.length);
    }
    backlog.pop_front();
    if (other_.empty()) {
      arbiter_.forget();
    }
    return packet;
  }

 private:
  frame::TrafficClass next() const {
    if (ring_.empty() || other_.empty()) {
      return ring_.empty() ? frame::TrafficClass::other : frame::TrafficClass::ring;
    }
    return arbiter_.next(other_.front()->length);
  }

  std::deque<Packet*> ring_;
  std::deque<Packet*> other_;
  lcore::TxArbiter arbiter_;
};

} // namespace weir::network
