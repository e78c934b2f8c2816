// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "frame/trace.hpp"

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace weir::frame {

/// Which packets a capture takes. Every lcore asks its own copy.
struct CaptureFilter {
  std::uint64_t ports = UINT64_MAX; // set of ports; packets that came in or leave by one of them
  /// Further conditions; none when empty.
  std::function<bool(const Frame& frame, const TraceRecord& record)> takes;
};

/// A frame at the moment when the switch decided on it. It stands for the packet that came in, for
/// one packet for each port by which it leaves, or for both. Where it stands for neither, the
/// switch dropped it between its ports: a frame that it had held, could not send, or made itself.
struct CapturedFrame {
  TraceRecord record;
  std::uint16_t inbound = kNoPort; // kNoPort: it stands for no packet that came in
  std::uint64_t outbound = 0;      // set of ports
  std::uint32_t kept = 0;          // bytes in the copy, at most record.length

  std::uint32_t packets() const;
};

/// Copies of an lcore's frames on their way to the thread that writes the capture: a queue with one
/// producer and one consumer. Its memory is bounded. A frame that finds it full is left out and
/// counted.
class CaptureTap {
 public:
  /// Room for `frames` copies of at most `most_bytes` each; longer ones are cut.
  CaptureTap(CaptureFilter filter, std::size_t frames, std::uint32_t most_bytes);

  /// On the lcore.
  void take(const Frame& frame, const TraceRecord& record);

  /// Calls visit(const CapturedFrame&, std::span<const std::uint8_t> bytes) with each copy, the
  /// oldest first. Returns their number. On the writing thread.
  template <typename Visitor>
  std::size_t drain(Visitor&& visit);

  /// Packets that found the queue full. On any thread.
  std::uint64_t left_out() const { return left_out_; }

 private:
  bool concerns(const Frame& frame, const TraceRecord& record) const;
  /// nullopt: the filter's ports have nothing to do with it.
  std::optional<CapturedFrame> places_of(const Frame& frame, const TraceRecord& record) const;
  void push(const CapturedFrame& captured, const std::uint8_t* bytes);
  std::span<std::uint8_t> room_of(std::uint64_t number);

  CaptureFilter filter_;
  std::uint32_t most_bytes_;
  std::vector<CapturedFrame> frames_;
  std::vector<std::uint8_t> bytes_;                // most_bytes_ for each frame
  Count left_out_;                                 // written by the lcore
  alignas(64) std::atomic<std::uint64_t> head_{0}; // next to read; written by the writing thread
  alignas(64) std::atomic<std::uint64_t> tail_{0}; // next to write; written by the lcore
};

template <typename Visitor>
std::size_t CaptureTap::drain(Visitor&& visit) {
  const std::uint64_t tail = tail_.load(std::memory_order_acquire);
  const std::uint64_t first = head_.load(std::memory_order_relaxed);
  assert(tail - first <= frames_.size());
  for (std::uint64_t number = first; number != tail; ++number) {
    const CapturedFrame& captured = frames_[number % frames_.size()];
    visit(captured, std::span<const std::uint8_t>(room_of(number).first(captured.kept)));
    head_.store(number + 1, std::memory_order_release);
  }
  return tail - first;
}

} // namespace weir::frame
