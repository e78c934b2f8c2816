// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The tests' frames, and a sink that records the frames that leave.

#include "frame/frame.hpp"
#include "stage/inline_switch.hpp"
#include "support/frame_builder.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::test {

/// Frames on the heap, each in a block of exactly its length.
class FramePool {
 public:
  frame::Frame& make(std::span<const std::uint8_t> bytes, std::uint16_t ingress) {
    auto owned = std::make_unique<Owned>(bytes);
    owned->frame.data = owned->bytes.data();
    owned->frame.length = static_cast<std::uint32_t>(bytes.size());
    owned->frame.ingress = ingress;
    frame::Frame& frame = owned->frame;
    live_.emplace(&frame, std::move(owned));
    return frame;
  }

  /// Throws std::logic_error for a frame that is not, or no longer, the pool's.
  void release(frame::Frame& frame) {
    if (live_.erase(&frame) != 1) {
      throw std::logic_error("a frame was released twice");
    }
  }

  std::size_t live() const { return live_.size(); }

 private:
  struct Owned {
    explicit Owned(std::span<const std::uint8_t> source) : bytes(source) {}

    frame::Frame frame;
    ExactCopy bytes;
  };

  std::unordered_map<const frame::Frame*, std::unique_ptr<Owned>> live_;
};

/// A frame when it left.
struct Sent {
  Bytes bytes;
  l2::PortSet ports = 0;
  frame::Departure departure{};

  bool operator==(const Sent&) const = default;
};

/// Records what was sent and returns every frame to its pool.
class RecordingSink : public stage::FrameSink {
 public:
  explicit RecordingSink(FramePool& pool) : pool_(pool) {}

  void attach(stage::InlineSwitch& owner) { owner_ = &owner; }

  void transmit(frame::Frame& frame, l2::PortSet ports) override {
    if (ports == 0) {
      throw std::logic_error("a frame was sent to no port");
    }
    const auto bytes = frame.bytes();
    traffic_.push_back(frame.traffic);
    sent_.push_back({Bytes(bytes.begin(), bytes.end()), ports, frame.departure});
    owner_->count(frame.departure);
    owner_->count_copies(static_cast<std::uint64_t>(std::popcount(ports)) - 1);
    pool_.release(frame);
  }

  void release(frame::Frame& frame) override { pool_.release(frame); }

  frame::Frame* originate(std::uint32_t bytes) override {
    frame::Frame& frame = pool_.make(Bytes(bytes), frame::kNoPort);
    frame.length = 0;
    return &frame;
  }

  /// The traffic class of each frame sent since the last call.
  std::vector<frame::TrafficClass> take_classes() { return std::exchange(traffic_, {}); }

  /// What was sent since the last call.
  std::vector<Sent> take() { return std::exchange(sent_, {}); }

 private:
  FramePool& pool_;
  stage::InlineSwitch* owner_ = nullptr;
  std::vector<Sent> sent_;
  std::vector<frame::TrafficClass> traffic_;
};

} // namespace weir::test
