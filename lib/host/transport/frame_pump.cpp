// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/frame_pump.hpp"

#include "random/random_bytes.hpp"

#include <chrono>
#include <cstddef>
#include <optional>

namespace weir::host {
namespace {

constexpr std::uint32_t kMost24Bits = 0xffffff;

} // namespace

void FramePump::accept(std::span<std::uint8_t> frame) {
  receiver_->receive(frame, now_);
}

bool FramePump::receive(endpoint::Device& device) {
  now_ = endpoint::TimePoint(std::chrono::steady_clock::now().time_since_epoch());
  receiver_ = &device;
  const bool moved = frames_->receive(*this) != 0;
  device.expire(now_);
  return moved;
}

bool FramePump::is_lost() {
  return loss_.share > 0 && static_cast<double>(dice_() >> 11) * 0x1p-53 < loss_.share;
}

bool FramePump::transmit(endpoint::Device& device) {
  constexpr std::size_t kBurst = 64; // then look for incoming frames
  bool moved = false;
  for (std::size_t sent = 0; sent < kBurst; ++sent) {
    const std::span<std::uint8_t> room = frames_->reserve(device.max_frame_bytes());
    if (room.empty()) {
      break;
    }
    const std::size_t frame_bytes = device.transmit(room, now_);
    if (frame_bytes == 0) {
      break;
    }
    moved = true;
    if (is_lost()) {
      ++frames_lost_;
    } else {
      frames_->commit(frame_bytes);
    }
  }
  frames_->flush();
  return moved;
}

Deadline due_of(const endpoint::Device& device) {
  const std::optional<endpoint::TimePoint> deadline = device.next_deadline();
  return deadline ? Deadline(deadline->time_since_epoch()) : Deadline::max();
}

std::uint32_t draw_queue_pairs(std::uint32_t count) {
  constexpr std::uint32_t kFirstNumber = 2; // 0 and 1 are for management, 0xffffff for multicast
  return random_number(kFirstNumber, kMost24Bits - count);
}

std::uint32_t draw_psn() {
  return random_number(0, kMost24Bits);
}

} // namespace weir::host
