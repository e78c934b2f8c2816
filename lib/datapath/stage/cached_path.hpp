// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/aggregate.hpp"
#include "stage/flow_cache.hpp"
#include "stage/forward.hpp"
#include "stage/graph_watch.hpp"
#include "stage/queue.hpp"

namespace weir::stage {

class Pipeline;

/// The shortcut of a packet that its ring expects: with the headers of an earlier packet of the
/// same connection, inside a known message or at the start of a new one of the same shape. It does
/// what Receive, Dispatch, Queue and Classify do to such a packet, and hands it to Aggregate. All
/// other frames take the stages. One per worker, for frames that the worker's own lcore receives.
///
/// An entry tells the bridge ten times a second where its sender is, if the ring has pinned the
/// sender to its port: a station is forgotten after a second or more. A sender that could not be
/// pinned may be heard at another port at any time, so its entry tells more often: of each packet
/// but those that take_next_of_run() takes.
class CachedPath {
 public:
  explicit CachedPath(Pipeline& pipeline);

  /// Said before the first frame of a burst.
  void begin_burst() { learnt_before_ = flow_cache_.learnt(); }

  /// The frame's entry, for take() in the same burst. nullptr: it takes the stages.
  /// The entry is also that of any other frame of the burst that has its headers.
  FlowCacheEntry* entry_of(std::span<const std::uint8_t> frame, std::uint16_t ingress) {
    return forward_.is_watched() ? nullptr : flow_cache_.find(frame, ingress);
  }

  /// The worker's slots take so many bytes.
  void expect_slots(std::size_t bytes) { is_far_ = bytes > kNearCache; }

  /// Whether what the rings' packets use may be far away, so that load() is worth while.
  bool is_far() const { return is_far_; }

  /// Loads what entry_of() and take() use of the connections of a burst from one port.
  void load(std::span<const std::span<const std::uint8_t>> frames, std::uint16_t ingress) {
    flow_cache_.load(frames, ingress);
  }

  /// Loads the slot that the frame, whose entry this is, will probably go to.
  [[gnu::always_inline]] static void load_slot(const FlowCacheEntry& entry,
                                               std::span<const std::uint8_t> frame) {
    if (const auto slot = entry.live.history->probable_slot(entry.headers.psn_of(frame))) {
      entry.slots->load(*slot);
    }
  }

  /// Takes frames of a burst that follow one another, whose entry_of() this is. `frames.next()`
  /// returns one after the other, with data, length and ingress set and with the packet that the
  /// entry has learnt; nullptr ends them. Returns how many were taken. If some are left, the
  /// first of them must take the stages: it is no packet that is expected, or one before it has
  /// changed its connection or the entry. Nobody has counted it or kept anything of it. Only two
  /// things may have been written: the frame's own fields (its PSN, and whether its ICRC is right),
  /// and the record that the connection's history tries first.
  template <typename Frames>
  unsigned take(FlowCacheEntry& entry, frame::Instant now, Frames frames) {
    unsigned taken = 0;
    unsigned in_run = 0;
    bool is_run = false; // the next one may follow the one before it
    while (frame::Frame* frame = frames.next()) {
      if (is_run && take_next_of_run(*frame, entry, now)) [[likely]] {
        ++in_run;
      } else if (take(*frame, entry, now)) {
        is_run = begin_run(entry, now);
      } else {
        break;
      }
      ++taken;
    }
    count(in_run, entry);
    return taken;
  }

  static constexpr std::uint64_t kLearnEveryMs = 100;

  /// How many frames it has taken.
  std::uint64_t taken() const { return taken_; }

 private:
  static constexpr std::size_t kNearCache = 1u << 18; // bytes, of the second level's

  using Located = conn::MessageHistory::Located;

  /// Packets of a message that follow one another: what the first one, which was taken, has shown
  /// of the others. The numbers of packet and slot are the last one's.
  struct Run {
    RingState* ring = nullptr;
    conn::Verdict verdict;
    slot::Contribution contribution;
  };

  /// Takes the packet if it is the next one on its connection, inside the message, and intact. All
  /// else holds as for the one before it, in the same instant. False when take() must check it.
  [[gnu::always_inline]] bool take_next_of_run(frame::Frame& frame, FlowCacheEntry& entry,
                                               frame::Instant now) {
    const std::uint32_t psn = entry.headers.psn_of(frame.bytes());
    const conn::MessageRecord& record = *run_.verdict.record;
    const std::uint32_t packet = record.packet_of(psn);
    const bool is_inside = packet != 0 && packet + 1 < record.packets;
    if (!entry.live.flow->is_next(psn) || !is_inside || !entry.icrc.verify(frame)) [[unlikely]] {
      return false;
    }
    frame.packet.psn = psn;
    pass(frame, entry);
    run_.verdict.packet = packet;
    run_.contribution.slot = record.first_slot + packet;
    aggregate_.accept_next(frame, run_.verdict, run_.contribution, *run_.ring, now);
    return true;
  }

  bool take(frame::Frame& frame, FlowCacheEntry& entry, frame::Instant now);
  bool begin_run(const FlowCacheEntry& entry, frame::Instant now);
  void count(unsigned in_run, const FlowCacheEntry& entry);

  static void pass(frame::Frame& frame, const FlowCacheEntry& entry) {
    frame.pair = entry.live.connection->pair;
    count_taken(ShortcutId::cached_path);
  }

  static conn::Verdict verdict_of(const FlowCacheEntry& entry, conn::MessageRecord* record,
                                  std::uint32_t packet) {
    return {.step = conn::Verdict::Step::contribute,
            .ring = entry.live.connection->ring,
            .child = entry.live.connection->child,
            .record = record,
            .packet = packet,
            .flow = entry.live.flow};
  }

  bool is_still_for(const FlowCacheEntry& entry, const frame::Frame& frame) const {
    return flow_cache_.learnt() == learnt_before_ ||
           flow_cache_.is_for(entry, frame.bytes(), frame.ingress);
  }

  static bool verify(frame::Frame& frame, FlowCacheEntry& entry);
  static Located start_of_message(frame::Frame& frame, FlowCacheEntry& entry);
  static Located inside_message(const frame::Frame& frame, FlowCacheEntry& entry);
  void learn_station(const frame::Frame& frame, FlowCacheEntry& entry, frame::Instant now);

  FlowCache& flow_cache_;
  RingStates& rings_;
  const Queue& queue_;
  const Forward& forward_;
  l2::Bridge& bridge_;
  Aggregate& aggregate_;
  frame::FrameCounters& counters_;
  std::uint64_t learnt_before_ = 0; // by the flow cache, when the burst began
  std::uint64_t taken_ = 0;
  bool is_far_ = false;
  Run run_; // take()'s own; a local one would be cleared each time
};

} // namespace weir::stage
