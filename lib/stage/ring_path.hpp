// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/aggregate.hpp"
#include "stage/forward.hpp"
#include "stage/lanes.hpp"
#include "stage/queue.hpp"

namespace weir::stage {

/// The way of a packet that its ring expects: with the headers of an earlier packet of the same
/// connection, inside a known message or at the start of a new one of the same shape. It does
/// what Receive, Dispatch, Queue and Classify do to such a packet, and hands it to Aggregate. All
/// other frames take the stages. One per worker, for frames that the worker's own lcore receives.
///
/// A station is learnt once in a millisecond here. So if two ports bring frames of one station at
/// once, where it is may change that much later.
class RingPath {
 public:
  RingPath(Lanes& lanes, const Queue& queue, const Forward& forward, l2::Bridge& bridge,
           Aggregate& aggregate, frame::FrameCounters& counters);

  /// Said before the first frame of a burst.
  void begin_burst() { learnt_before_ = lanes_.learnt(); }

  /// The lane that the frame goes in, for take() in the same burst. nullptr: it takes the stages.
  Lane* lane_of(std::span<const std::uint8_t> frame, std::uint16_t ingress) {
    return forward_.is_watched() ? nullptr : lanes_.find(frame, ingress);
  }

  /// The worker's slots take so many bytes.
  void expect_slots(std::size_t bytes) { is_far_ = bytes > kNearCache; }

  /// Whether what the rings' packets use may be far away, so that load() is worth while.
  bool is_far() const { return is_far_; }

  /// Loads what lane_of() and take() use of the connections of a burst from one port.
  void load(std::span<const std::span<const std::uint8_t>> frames, std::uint16_t ingress) {
    lanes_.load(frames, ingress);
  }

  /// Loads the slot that the frame, whose lane this is, will probably go to, if it may be far away.
  [[gnu::always_inline]] void load_slot(const Lane& lane,
                                        std::span<const std::uint8_t> frame) const {
    if (!is_far_) {
      return;
    }
    if (const auto slot = lane.live.history->probable_slot(lane.headers.psn_of(frame))) {
      lane.slots->load(*slot);
    }
  }

  /// Takes a frame with data, length and ingress set, whose lane_of() this is, and with the packet
  /// that the lane has learnt. False when it must take the stages after all, because of what came
  /// since or what it is. Then nothing has changed but what the frame knows of itself, and where
  /// its connection's history looks first.
  bool take(frame::Frame& frame, Lane& lane, frame::Instant now);

  /// How many frames it has taken.
  std::uint64_t taken() const { return taken_; }

 private:
  static constexpr std::size_t kNearCache = 1u << 18; // bytes, of the second level's

  using Located = conn::MessageHistory::Located;

  bool is_still_for(const Lane& lane, const frame::Frame& frame) const {
    return lanes_.learnt() == learnt_before_ || lanes_.is_for(lane, frame.bytes(), frame.ingress);
  }

  static bool verify(frame::Frame& frame, const Lane& lane);
  static Located start_of_message(frame::Frame& frame, Lane& lane);
  static Located inside_message(const frame::Frame& frame, Lane& lane);
  void learn_station(const frame::Frame& frame, Lane& lane, frame::Instant now);

  Lanes& lanes_;
  const Queue& queue_;
  const Forward& forward_;
  l2::Bridge& bridge_;
  Aggregate& aggregate_;
  frame::FrameCounters& counters_;
  std::uint64_t learnt_before_ = 0; // by the lanes, when the burst began
  std::uint64_t taken_ = 0;
  bool is_far_ = false;
};

} // namespace weir::stage
