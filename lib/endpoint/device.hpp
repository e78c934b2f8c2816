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

/// What a device could not hand to any queue pair.
struct DeviceStatistics {
  std::uint64_t not_roce = 0;
  std::uint64_t malformed = 0;
  std::uint64_t unknown_queue_pair = 0;
};

/// The queue pairs behind one network interface, and the memory that their peers may write. Frames
/// find their queue pair by destination QP and destination address; queue pairs take turns sending.
/// One thread at a time. Every call costs a look at each queue pair at most, so this is for tens of
/// them.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  MemoryTable& memory() { return memory_; }

  /// Throws std::invalid_argument for a bad configuration or a <local_qp, local_ip> that is taken.
  /// The reference holds as long as the device.
  QueuePair& create(const QueuePairConfig& config);

  void receive(std::span<std::uint8_t> bytes, TimePoint now);
  /// The next frame of the next queue pair that has one; 0 when none has. The buffer holds
  /// max_frame_bytes().
  std::size_t transmit(std::span<std::uint8_t> buffer, TimePoint now);
  std::optional<TimePoint> next_deadline() const;
  void expire(TimePoint now);

  std::size_t size() const { return queue_pairs_.size(); }

  QueuePair& operator[](std::size_t index) { return *queue_pairs_[index]; }

  const DeviceStatistics& statistics() const { return statistics_; }

  /// Of the queue pairs there are.
  std::size_t max_frame_bytes() const { return max_frame_bytes_; }

 private:
  QueuePair* find(std::uint32_t queue_pair, const wire::IpAddress& address) const;

  MemoryTable memory_;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs_;
  std::size_t turn_ = 0; // whose turn it is to send
  std::size_t max_frame_bytes_ = 0;
  DeviceStatistics statistics_;
};

} // namespace weir::endpoint
