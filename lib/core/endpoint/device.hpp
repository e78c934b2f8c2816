// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/memory.hpp"
#include "endpoint/queue_pair.hpp"
#include "endpoint/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weir::endpoint {

/// Frames that the device could not give to any queue pair.
struct DeviceStatistics {
  std::uint64_t not_roce = 0;
  std::uint64_t malformed = 0;
  std::uint64_t unknown_queue_pair = 0;
};

/// The queue pairs of one network interface, and the memory that their peers may write. A frame's
/// queue pair is found by destination QP and destination address. Queue pairs take turns sending.
/// One thread at a time. Every call looks at each queue pair at most once, so this is for tens of
/// them.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  MemoryTable& memory() { return memory_; }

  /// Throws std::invalid_argument for a bad configuration, or when <local_qp, local_ip> is in use.
  /// The reference stays valid as long as the device.
  QueuePair& create(const QueuePairConfig& config);

  void receive(std::span<std::uint8_t> bytes, TimePoint now);
  /// Writes the next frame of the next queue pair that has one; returns its length, or 0 when none
  /// has. The buffer holds max_frame_bytes().
  std::size_t transmit(std::span<std::uint8_t> buffer, TimePoint now);
  std::optional<TimePoint> next_deadline() const;
  void expire(TimePoint now);

  std::size_t size() const { return queue_pairs_.size(); }

  QueuePair& operator[](std::size_t index) { return *queue_pairs_[index]; }

  const DeviceStatistics& statistics() const { return statistics_; }

  /// The largest of all queue pairs.
  std::size_t max_frame_bytes() const { return max_frame_bytes_; }

 private:
  QueuePair* find(std::uint32_t queue_pair, const wire::IpAddress& address) const;

  MemoryTable memory_;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs_;
  std::size_t turn_ = 0; // the queue pair that sends next
  std::size_t max_frame_bytes_ = 0;
  DeviceStatistics statistics_;
};

} // namespace weir::endpoint
