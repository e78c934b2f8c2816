// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/burst_memory.hpp"

#include <array>
#include <atomic>
#include <utility>

namespace weir::host {
namespace {

constexpr std::size_t kMostSpare = 8; // of threads that send or receive at once

/// What nobody uses. Without a lock, which a fork could leave locked.
constinit std::array<std::atomic<std::uint8_t*>, kMostSpare> spare{};

} // namespace

BurstMemory BurstMemory::take() {
  BurstMemory memory;
  for (std::atomic<std::uint8_t*>& place : spare) {
    memory.frames_.reset(place.exchange(nullptr, std::memory_order_acquire));
    if (memory) {
      return memory;
    }
  }
  // The kernel gives pages when frames come.
  memory.frames_ = std::make_unique_for_overwrite<std::uint8_t[]>(kFrames * kFrameBytes);
  return memory;
}

BurstMemory::~BurstMemory() {
  for (std::size_t place = 0; place < kMostSpare && frames_; ++place) {
    std::uint8_t* none = nullptr;
    if (spare[place].compare_exchange_strong(none, frames_.get(), std::memory_order_release,
                                             std::memory_order_relaxed)) {
      static_cast<void>(frames_.release());
    }
  }
}

BurstMemory& BurstMemory::operator=(BurstMemory&& other) noexcept {
  std::swap(frames_, other.frames_);
  return *this;
}

} // namespace weir::host
