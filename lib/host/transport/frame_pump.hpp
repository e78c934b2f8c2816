// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/device.hpp"
#include "endpoint/time.hpp"
#include "host/base/stream.hpp"
#include "host/transport/frame_io.hpp"

#include <cstdint>
#include <memory>
#include <random>
#include <span>

namespace weir::host {

/// Frames that are dropped on purpose.
struct FrameLoss {
  double share = 0; // of our own, 0 .. 1
  std::uint64_t seed = 1;
};

/// Moves frames between software queue pairs and the network. One thread at a time.
class FramePump : private FrameReader {
 public:
  FramePump(std::unique_ptr<FrameIo> frames, const FrameLoss& loss)
      : frames_(std::move(frames)), loss_(loss), dice_(loss.seed) {}

  FrameIo& frames() { return *frames_; }

  const FrameIo& frames() const { return *frames_; }

  /// Gives the device what has come, at most a burst, and runs the timers that are due. True if
  /// anything has come.
  bool receive(endpoint::Device& device);
  /// Sends a burst of what the device has. True if there was any.
  bool transmit(endpoint::Device& device);

  std::uint64_t frames_lost() const { return frames_lost_; }

 private:
  void accept(std::span<std::uint8_t> frame) override;
  bool is_lost();

  std::unique_ptr<FrameIo> frames_;
  const FrameLoss loss_;
  std::mt19937_64 dice_;
  std::uint64_t frames_lost_ = 0;
  endpoint::TimePoint now_;              // of the last receive()
  endpoint::Device* receiver_ = nullptr; // during receive()
};

/// When the device has work even if nothing comes. The clock's maximum: never.
Deadline due_of(const endpoint::Device& device);

/// A source port, whose low bits spread flows among paths (IBTA annex A17.4.2).
constexpr std::uint16_t entropy_port(std::uint32_t queue_pair) {
  return static_cast<std::uint16_t>(0xc000 | (queue_pair & 0x3fff));
}

/// The first of so many numbers of queue pairs, drawn so that other groups of this host are not
/// likely to have them: equal ones would take one another's packets.
std::uint32_t draw_queue_pairs(std::uint32_t count);
std::uint32_t draw_psn();

} // namespace weir::host
