// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lab.hpp"
#include "support/frame_builder.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace weir::load {

/// A MIDDLE from a station at that port on a connection without a FIRST: dropped as unclassified.
test::Bytes middle_from_nowhere(std::uint16_t port);

/// Plain RoCE messages to a member from a neighbour in another ring, which pass the worker and
/// compete with the ring's results for the member's port; MIDDLEs of messages without a FIRST; and
/// frames for a station that never receives.
std::vector<test::Bytes> all_sorts();

/// What any host may send to a member: full-sized frames, no RoCE.
std::vector<test::Bytes> bulk_for(std::uint16_t member);

/// A sender of more frames than the switch can take, between start() and stop().
class Noise {
 public:
  explicit Noise(const Lab& lab);
  ~Noise();
  Noise(const Noise&) = delete;
  Noise& operator=(const Noise&) = delete;

  /// Sends these frames in turn, again and again.
  void start(std::vector<test::Bytes> frames);
  void stop();

  /// Frames for which the switch's port had no room.
  std::uint64_t refused() const { return refused_; }

  std::uint64_t sent() const { return sent_; }

  /// Takes the frames that wait for the station that never receives, so that none is left in the
  /// switch. After stop().
  void drain();

 private:
  void run();

  std::unique_ptr<host::FrameIo> wire_;
  std::unique_ptr<host::FrameIo> deaf_;
  std::vector<test::Bytes> frames_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<bool> is_stopping_{false};
  std::thread sender_;
};

} // namespace weir::load
