// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/aggregate.hpp"
#include "stage/forward.hpp"
#include "stage/graph_watch.hpp"
#include "stage/lanes.hpp"
#include "stage/queue.hpp"

namespace weir::stage {

/// The way of a packet that its ring expects: with the headers of an earlier packet of the same
/// connection, inside a known message or at the start of a new one of the same shape. It does
/// what Receive, Dispatch, Queue and Classify do to such a packet, and hands it to Aggregate. All
/// other frames take the stages. One per worker, for frames that the worker's own lcore receives.
///
/// A lane tells the bridge ten times a second where its sender is, if the ring has pinned the
/// sender to its port: a station is forgotten after a second or more. A sender that could not be
/// pinned may be heard at another port at any time, so its lane tells more often: of each packet
/// but those that take_follower() takes.
class RingPath {
 public:
  RingPath(Lanes& lanes, RingStates& rings, const Queue& queue, const Forward& forward,
           l2::Bridge& bridge, Aggregate& aggregate, frame::FrameCounters& counters);

  /// Said before the first frame of a burst.
  void begin_burst() { learnt_before_ = lanes_.learnt(); }

  /// The lane that the frame goes in, for take() in the same burst. nullptr: it takes the stages.
  /// Another frame of the burst that has the lane's headers goes in it too.
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

  /// Loads the slot that the frame, whose lane this is, will probably go to.
  [[gnu::always_inline]] static void load_slot(const Lane& lane,
                                               std::span<const std::uint8_t> frame) {
    if (const auto slot = lane.live.history->probable_slot(lane.headers.psn_of(frame))) {
      lane.slots->load(*slot);
    }
  }

  /// Takes frames of a burst that follow one another, whose lane_of() this is. `frames.next()`
  /// returns one after the other, with data, length and ingress set and with the packet that the
  /// lane has learnt; nullptr ends them. Returns how many were taken. If these are not all, the
  /// next one must take the stages, because of what came since or what it is. Of that one nothing
  /// has changed but what the frame knows of itself, and where its connection's history looks
  /// first.
  template <typename Frames>
  unsigned take(Lane& lane, frame::Instant now, Frames frames) {
    unsigned taken = 0;
    unsigned followers = 0;
    bool may_follow = false; // whether the next one may be a follower
    while (frame::Frame* frame = frames.next()) {
      if (may_follow && take_follower(*frame, lane, now)) [[likely]] {
        ++followers;
      } else if (take(*frame, lane, now)) {
        may_follow = prepare_for_followers(lane, now);
      } else {
        break;
      }
      ++taken;
    }
    count(followers, lane);
    return taken;
  }

  static constexpr std::uint64_t kLearnEveryMs = 100;

  /// How many frames it has taken.
  std::uint64_t taken() const { return taken_; }

 private:
  static constexpr std::size_t kNearCache = 1u << 18; // bytes, of the second level's

  using Located = conn::MessageHistory::Located;

  /// What a packet inside a message, which was taken, has shown of those that follow it. The
  /// numbers of packet and slot are the last follower's.
  struct Followers {
    RingState* ring = nullptr;
    conn::Verdict verdict;
    slot::Contribution contribution;
  };

  /// Takes the packet if it is the next one on its connection, inside the message, and intact. All
  /// else holds as for the one before it, in the same instant. False when take() must look at it.
  [[gnu::always_inline]] bool take_follower(frame::Frame& frame, Lane& lane, frame::Instant now) {
    const std::uint32_t psn = lane.headers.psn_of(frame.bytes());
    const conn::MessageRecord& record = *followers_.verdict.record;
    const std::uint32_t packet = record.packet_of(psn);
    const bool is_inside = packet != 0 && packet + 1 < record.packets;
    if (!lane.live.flow->is_next(psn) || !is_inside || !lane.icrc.verify(frame)) [[unlikely]] {
      return false;
    }
    frame.packet.psn = psn;
    pass(frame, lane);
    followers_.verdict.packet = packet;
    followers_.contribution.slot = record.first_slot + packet;
    aggregate_.accept_next(frame, followers_.verdict, followers_.contribution, *followers_.ring,
                           now);
    return true;
  }

  bool take(frame::Frame& frame, Lane& lane, frame::Instant now);
  bool prepare_for_followers(const Lane& lane, frame::Instant now);
  void count(unsigned followers, const Lane& lane);

  static void pass(frame::Frame& frame, const Lane& lane) {
    frame.pair = lane.live.connection->pair;
    passes<StageId::receive, StageId::dispatch>();
    passes<StageId::dispatch, StageId::queue>();
    passes<StageId::queue, StageId::classify>();
    passes<StageId::classify, StageId::aggregate>();
  }

  static conn::Verdict verdict_of(const Lane& lane, conn::MessageRecord* record,
                                  std::uint32_t packet) {
    return {.step = conn::Verdict::Step::contribute,
            .ring = lane.live.connection->ring,
            .child = lane.live.connection->child,
            .record = record,
            .packet = packet,
            .flow = lane.live.flow};
  }

  bool is_still_for(const Lane& lane, const frame::Frame& frame) const {
    return lanes_.learnt() == learnt_before_ || lanes_.is_for(lane, frame.bytes(), frame.ingress);
  }

  static bool verify(frame::Frame& frame, Lane& lane);
  static Located start_of_message(frame::Frame& frame, Lane& lane);
  static Located inside_message(const frame::Frame& frame, Lane& lane);
  void learn_station(const frame::Frame& frame, Lane& lane, frame::Instant now);

  Lanes& lanes_;
  RingStates& rings_;
  const Queue& queue_;
  const Forward& forward_;
  l2::Bridge& bridge_;
  Aggregate& aggregate_;
  frame::FrameCounters& counters_;
  std::uint64_t learnt_before_ = 0; // by the lanes, when the burst began
  std::uint64_t taken_ = 0;
  bool is_far_ = false;
  Followers followers_; // take()'s own; a local one would be cleared each time
};

} // namespace weir::stage
