// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/device.hpp"
#include "network/deadline_timer.hpp"
#include "network/time.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::network {

/// What a host's device is connected to.
class Plug {
 public:
  virtual ~Plug() = default;
  virtual Time now() const = 0;
  virtual void send(std::span<const std::uint8_t> frame) = 0;

  /// When the link takes the next frame. A NIC decides only then which frame that is.
  virtual Time takes_frame_at() const { return 0; }

  /// Calls the device's expire() at that time. A call cannot be cancelled.
  virtual void wake_at(Time time) = 0;
};

/// A host's endpoint::Device in virtual time. Sends what it can, and asks to be woken for its next
/// deadline.
class TimedDevice {
 public:
  /// `longest_frame` in bytes.
  TimedDevice(Plug& plug, std::size_t longest_frame) : plug_(plug), buffer_(longest_frame) {}

  endpoint::MemoryTable& memory() { return device_.memory(); }

  endpoint::QueuePair& create(const endpoint::QueuePairConfig& config) {
    return device_.create(config);
  }

  void receive(std::span<std::uint8_t> frame) { device_.receive(frame, now()); }

  /// Does the work that is due. False if there is none.
  bool expire();

  /// Sends what the link takes now, then sets the timer.
  void transmit();

 private:
  endpoint::TimePoint now() const { return endpoint_time(plug_.now()); }

  Plug& plug_;
  endpoint::Device device_;
  std::vector<std::uint8_t> buffer_;
  DeadlineTimer timer_;
  DeadlineTimer link_timer_;
};

} // namespace weir::network
