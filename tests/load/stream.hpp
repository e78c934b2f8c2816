// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lab.hpp"
#include "support/frame_builder.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

namespace weir::load {

/// Other traffic between two ports that are no bottleneck: numbered frames at a steady, low rate.
/// They must come all the time and in order.
class Stream : private host::FrameReader {
 public:
  explicit Stream(const Lab& lab);
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::uint64_t sent() const { return sent_; }

  std::uint64_t received() const { return received_; }

  /// Frames that came after a later one.
  std::uint64_t late() const { return late_; }

 private:
  void run();
  void send_next();
  void accept(std::span<std::uint8_t> frame) override;

  std::unique_ptr<host::FrameIo> talker_;
  std::unique_ptr<host::FrameIo> listener_;
  test::Built frame_;
  std::uint32_t newest_ = 0;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> received_{0};
  std::atomic<std::uint64_t> late_{0};
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

} // namespace weir::load
