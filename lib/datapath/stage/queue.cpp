// SPDX-License-Identifier: BSD-3-Clause
#include "stage/queue.hpp"

#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"

#include <optional>

namespace weir::stage {
namespace {

/// The ring whose packets these are, where the frame's addresses alone say so.
std::optional<std::uint16_t> only_ring_of(const ring::RingSet& set, std::uint16_t pair) {
  std::optional<std::uint16_t> only;
  for (const std::uint16_t direction : {pair, set.reverse_of(pair)}) {
    for (const ring::RingChild& sender : set.senders(direction)) {
      if (only.value_or(sender.ring) != sender.ring) {
        return std::nullopt;
      }
      only = sender.ring;
    }
  }
  return only;
}

} // namespace

Queue::Queue(Pipeline& pipeline)
    : lines_(pipeline.state.lines), current_(pipeline.state.current), rings_(pipeline.state.rings),
      classify_(pipeline.classify), region_(pipeline.region), forward_(pipeline.state.forward) {
  follow_ring_groups();
}

void Queue::follow_ring_groups() {
  lines_.resize(current_->ring_groups());
  regroup();
}

void Queue::follow_region(std::uint16_t line, std::uint16_t tenant) {
  lines_.resize_for_regions(line + 1u);
  lines_.set_tenant(lines_.line_of_region(line), tenant);
  regroup();
  lines_.clear_counters(lines_.line_of_region(line));
}

void Queue::regroup() {
  lines_.regroup([this](const frame::Frame& frame) { return line_of(frame); });
}

/// What no member has sent is charged to none.
std::uint16_t Queue::line_of(const frame::Frame& frame) const {
  if (!is_for_region(frame)) {
    return current_->ring_group_of_pair(frame.pair);
  }
  const region::Region* const region = region_.region_of(frame);
  return region == nullptr ? lines_.line_of_strangers() : lines_.line_of_region(region->line());
}

void Queue::set_shares(const TenantShares& shares, frame::Instant now) {
  lines_.resize(shares.tenants.size());
  for (std::size_t ring_group = 0; ring_group < lines_.ring_groups(); ++ring_group) {
    lines_.set_tenant(static_cast<std::uint16_t>(ring_group), ring_group < shares.tenants.size()
                                                                  ? shares.tenants[ring_group]
                                                                  : FairQueue::kNoTenant);
  }
  for (std::size_t tenant = 0; tenant < shares.rates.size(); ++tenant) {
    lines_.set_rate(static_cast<std::uint16_t>(tenant), shares.rates[tenant], now);
  }
  follow_ring_groups();
  update();
}

unsigned Queue::take(std::span<frame::Frame*> frames, frame::Instant now) {
  const unsigned taken = lines_.take(frames, now);
  update();
  return taken;
}

void Queue::line_up(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) {
  if (!is_crowded_ && lines_.passes(ring_group, now)) {
    return pass(frame, now);
  }
  put(frame, ring_group, now);
}

void Queue::line_up_for_region(frame::Frame& frame, frame::Instant now) {
  const std::uint16_t line = line_of(frame);
  if (!is_crowded_ && lines_.passes(line, now)) {
    return pass_to_region(frame, now);
  }
  put(frame, line, now);
}

void Queue::put(frame::Frame& frame, std::uint16_t line, frame::Instant now) {
  const auto reason = lines_.put(frame, line);
  is_open_ = false;
  if (reason) {
    drop(frame, *reason, now);
  }
}

void Queue::drop(frame::Frame& frame, DropReason reason, frame::Instant now) {
  if (is_for_region(frame)) {
    const bool is_full = reason == DropReason::ring_queue_full;
    return forward_.drop<StageId::queue>(frame, is_full ? DropReason::region_queue_full : reason,
                                         now);
  }
  if (const auto ring = only_ring_of(*current_, frame.pair); ring && rings_[*ring]) {
    ++rings_[*ring]->counters.dropped[static_cast<std::size_t>(reason)];
  }
  forward_.drop<StageId::queue>(frame, reason, now);
}

void Queue::discard(frame::Instant now) {
  while (frame::Frame* frame = lines_.take_any()) {
    drop(*frame, DropReason::ring_queue_full, now);
  }
  update();
}

} // namespace weir::stage
