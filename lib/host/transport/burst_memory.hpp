// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weir::host {

/// Memory for a burst of frames, for as long as somebody sends or receives one. The process's
/// sockets share it: few do at once, and it is their largest part. Any thread; also in a child made
/// by fork while another thread takes some.
class BurstMemory {
 public:
  static constexpr std::size_t kFrames = 32;
  static constexpr std::size_t kFrameBytes = 10240; // a path MTU of 4096, headers and spare room

  /// None.
  BurstMemory() = default;
  ~BurstMemory();
  BurstMemory(BurstMemory&&) noexcept = default;
  BurstMemory& operator=(BurstMemory&& other) noexcept;

  /// What another has used last, or fresh. Its content is undefined.
  static BurstMemory take();

  explicit operator bool() const { return frames_ != nullptr; }

  /// The place of a frame; there are kFrames.
  std::uint8_t* frame(std::size_t index) const { return frames_.get() + index * kFrameBytes; }

 private:
  std::unique_ptr<std::uint8_t[]> frames_;
};

} // namespace weir::host
