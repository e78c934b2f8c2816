// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::bench {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* memory) const;
};

/// At least 32 MiB.
std::size_t last_level_cache_bytes();

/// Memory in huge pages where the kernel has them, filled with zero. Throws std::runtime_error.
std::unique_ptr<std::byte, Unmap> map_huge(std::size_t bytes);

/// Frames of 1 KiB payload with valid ICRCs in more memory than the last-level cache holds, with
/// the switch's layout: each in an mbuf of its own, with its frame::Frame in the private area. In
/// random order, as in a mempool that has been used for some time.
class FramePlaces {
 public:
  static constexpr std::size_t kPayload = 1024;
  static constexpr unsigned kMostRanks = 64;

  FramePlaces();

  /// A multiple of kMostRanks. Each kMostRanks in a row are from ranks 0, 1, …
  std::size_t size() const { return frames_.size(); }

  frame::Frame* const* frames() const { return frames_.data(); }

  /// The value of frame.data, computed from the frame's address, so that the frame is not read.
  static const std::byte* data_of(const frame::Frame& frame);

  /// The address of each frame's payload.
  const std::byte* const* payloads() const { return payloads_.data(); }

 private:
  void place_frame(std::byte* mbuf, std::uint16_t rank);

  std::unique_ptr<std::byte, Unmap> memory_;
  std::vector<std::vector<std::uint8_t>> by_rank_;
  std::vector<frame::Frame*> frames_;
  std::vector<const std::byte*> payloads_;
};

} // namespace weir::bench
