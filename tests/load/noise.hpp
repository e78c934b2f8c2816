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

/// From a station at that port, for a connection that nobody opened: dropped as unclassified.
test::Bytes middle_from_nowhere(std::uint16_t port);

/// Plain RoCE messages to a member from a neighbour in another ring, which pass the worker and
/// compete with the ring's results for the member's port; the middles of messages that never began;
/// and frames for a station that takes none.
std::vector<test::Bytes> all_sorts();

/// What any host may send to a member: no RoCE, full-sized frames.
std::vector<test::Bytes> bulk_for(std::uint16_t member);

/// One sender that offers more than the switch can take, between start() and stop().
class Noise {
 public:
  explicit Noise(const Lab& lab);
  ~Noise();
  Noise(const Noise&) = delete;
  Noise& operator=(const Noise&) = delete;

  /// Sends these frames in turn.
  void start(std::vector<test::Bytes> frames);
  void stop();

  /// Frames that the switch's port had no room for.
  std::uint64_t refused() const { return refused_; }

  std::uint64_t sent() const { return sent_; }

  /// Takes what waits for the deaf station, so that nothing is left in the switch. After stop().
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
