// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dataplane/counters.hpp"
#include "wire/packet.hpp"

#include <rte_mbuf.h>

#include <cstdint>
#include <vector>

namespace weir::dataplane {

/// How a frame that waits for its port is to be counted once it has left.
enum class Leaving : std::uint8_t {
  forwarded,
  consumed,
  copy, // of a flooded frame; another port's entry stands for the frame
};

constexpr Leaving leaving_as(wire::Departure departure) {
  return departure == wire::Departure::consumed ? Leaving::consumed : Leaving::forwarded;
}

/// The last stage: one port's transmit queue, and behind it a backlog for bursts that the device
/// does not take at once (a completed slot sends H frames in one go). A port that stays full fills
/// its own backlog and no other's. Owned by one lcore.
class TxPort {
 public:
  static constexpr std::uint32_t kBacklog = 4096; // frames, a power of two

  TxPort(std::uint16_t device, std::uint16_t queue);

  /// False when the backlog is full; the caller keeps the mbuf.
  bool push(rte_mbuf* mbuf, Leaving leaving);

  /// Gives the device what it takes; counts what has left. Returns the number of frames.
  unsigned flush(FrameCounters& counters, PortCounters& port);

  /// Drops what has not left, for the end.
  void discard(FrameCounters& counters);

  std::uint32_t waiting() const { return tail_ - head_; }

  /// Of these, entries that stand for a frame rather than for a copy.
  std::uint32_t frames_waiting() const { return frames_waiting_; }

 private:
  static constexpr std::uint32_t kMask = kBacklog - 1;
  static constexpr std::uint16_t kBurst = 64;

  void count_departures(std::uint16_t sent, FrameCounters& counters);

  std::uint16_t device_;
  std::uint16_t queue_;
  std::uint32_t head_ = 0; // next to leave
  std::uint32_t tail_ = 0; // next free
  std::uint32_t frames_waiting_ = 0;
  std::vector<rte_mbuf*> mbufs_;
  std::vector<Leaving> leaving_;
  std::vector<std::uint32_t> lengths_; // the device frees an mbuf when it likes
};

} // namespace weir::dataplane
