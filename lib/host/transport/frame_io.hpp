// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/address.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::host {

/// Takes frames as they come in; the bytes are the caller's again after the call.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  virtual void accept(std::span<std::uint8_t> frame) = 0;
};

/// Raw Ethernet frames in and out, without FCS, in bursts. One thread at a time. Throws weir::Error
/// when the device is gone; a frame that is lost on the way is nobody's error.
class FrameIo {
 public:
  virtual ~FrameIo() = default;

  virtual wire::MacAddress mac() const = 0;

  /// Hands over what has come, a burst at most; returns how many frames.
  virtual std::size_t receive(FrameReader& reader) = 0;

  /// Room for the next frame to send, `bytes` long at most; empty when the device takes no more
  /// now. Room that is not committed is given again.
  virtual std::span<std::uint8_t> reserve(std::size_t bytes) = 0;
  virtual void commit(std::size_t frame_bytes) = 0;
  /// Sends what was committed, or as much as the device takes.
  virtual void flush() = 0;

  /// Returns when a frame may have come, after `timeout` at the latest, or right away.
  virtual void wait(std::chrono::microseconds timeout) = 0;
};

} // namespace weir::host
