// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/classify.hpp"
#include "stage/fair_queue.hpp"
#include "stage/region.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::stage {

class Pipeline;

/// Whether more frames than these are likely to wait where they came from.
enum class Backlog : std::uint8_t { none, likely };

/// What tenants may send to the rings of one worker.
struct TenantShares {
  std::vector<std::uint64_t> rates; // by tenant, in packets a second; 0: no limit
  // By ring group; FairQueue::kNoTenant, also for ring groups beyond the last one.
  std::vector<std::uint16_t> tenants;
};

/// The way of a ring's frames from dispatch to classify, and of a region's to region. While the
/// worker keeps up, they go straight through. Otherwise they wait in a line for each ring group and
/// each region (FairQueue), which get equal shares of the worker's time. Frames of one line never
/// overtake one another (protocol I7).
class Queue {
 public:
  /// The frames wait in the state's lines. If these have no room, frames always go straight
  /// through.
  explicit Queue(Pipeline& pipeline);

  /// Said before the frames of a burst. Only where several ring groups or regions share the worker
  /// does it matter.
  void expect(Backlog backlog) {
    is_crowded_ = backlog == Backlog::likely && is_shared();
    update();
  }

  /// Whether frames go straight through.
  bool is_open() const { return is_open_; }

  void accept(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) {
    if (is_open_) [[likely]] {
      return pass(frame, now);
    }
    line_up(frame, ring_group, now);
  }

  /// A RoCE packet to the regions' address.
  void accept_for_region(frame::Frame& frame, frame::Instant now) {
    bursts_of_regions_ = kBurstsOfRegions;
    if (is_open_) [[likely]] {
      return pass_to_region(frame, now);
    }
    line_up_for_region(frame, now);
  }

  /// A frame whose turn it is.
  void go_on(frame::Frame& frame, frame::Instant now) {
    if (is_for_region(frame)) [[unlikely]] {
      return pass_to_region(frame, now);
    }
    pass(frame, now);
  }

  /// As FairQueue::take.
  unsigned take(std::span<frame::Frame*> frames, frame::Instant now);

  /// So many ring groups have rings of this worker.
  void share_among(std::size_t ring_groups) { sharers_ = ring_groups; }

  /// The worker has one more region, which has this line, and a tenant or FairQueue::kNoTenant.
  void follow_region(std::uint16_t line, std::uint16_t tenant);

  /// The set of rings has changed, and perhaps which ring group a pair is in.
  void follow_ring_groups();

  /// Whose rings share which rates from now on. Called when the set of rings has changed too.
  void set_shares(const TenantShares& shares, frame::Instant now);

  /// Drops all that waits.
  void discard(frame::Instant now);

  const FairQueue& lines() const { return lines_; }

 private:
  // Some of no region's frames lie between two of one that shares the worker with a busy ring.
  static constexpr unsigned kBurstsOfRegions = 64;

  /// Frames between ring neighbours have a pair.
  static bool is_for_region(const frame::Frame& frame) { return frame.pair == 0; }

  /// Regions that send nothing take no ring off its straight way.
  bool is_shared() {
    const std::size_t regions = bursts_of_regions_ == 0 ? 0 : region_.table().regions().size();
    bursts_of_regions_ -= bursts_of_regions_ == 0 ? 0 : 1;
    return lines_.room() != 0 && sharers_ + regions > 1;
  }

  void pass(frame::Frame& frame, frame::Instant now) {
    passes<StageId::queue, StageId::classify>();
    classify_.accept(frame, now);
  }

  void pass_to_region(frame::Frame& frame, frame::Instant now) {
    passes<StageId::queue, StageId::region>();
    region_.accept(frame, now);
  }

  std::uint16_t line_of(const frame::Frame& frame) const;
  void line_up(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now);
  void line_up_for_region(frame::Frame& frame, frame::Instant now);
  void put(frame::Frame& frame, std::uint16_t line, frame::Instant now);
  void regroup();
  void drop(frame::Frame& frame, DropReason reason, frame::Instant now);

  void update() { is_open_ = !is_crowded_ && lines_.is_empty() && !lines_.has_rates(); }

  bool is_open_ = true;
  bool is_crowded_ = false;
  std::size_t sharers_ = 0;        // ring groups
  unsigned bursts_of_regions_ = 0; // full ones in which regions still count as sharers
  FairQueue& lines_;
  const ring::CurrentRings& current_;
  RingStates& rings_;
  Classify& classify_;
  Region& region_;
  Forward& forward_;
};

} // namespace weir::stage
