// SPDX-License-Identifier: BSD-3-Clause
#include "region/region_table.hpp"

#include <algorithm>
#include <utility>

namespace weir::region {

Region& RegionTable::add(RegionSpec spec, RegionBirth birth) {
  Region& region =
      *regions_.emplace_back(std::make_unique<Region>(std::move(spec), std::move(birth), outlet_));
  std::uint16_t member = 0;
  for (const MemberBirth& born : region.birth().members) {
    by_queue_pair_.emplace(born.queue_pair, Place{&region, member++});
  }
  return region;
}

void RegionTable::accept(frame::Frame& frame, frame::Instant now) {
  const auto found = by_queue_pair_.find(frame.packet.destination_qp);
  if (found == by_queue_pair_.end()) {
    return outlet_.drop(frame, DropReason::region_unknown, now);
  }
  const auto [region, member] = found->second;
  const bool had_said_hello = region->has_heard(member);
  region->accept(frame, member, now);
  if (!had_said_hello && region->has_heard(member)) {
    give_queue_pair(*region, member, now);
    region->open_if_complete(now);
  }
}

Region* RegionTable::with_id(std::uint32_t id) const {
  const auto found =
      std::ranges::find_if(regions_, [id](const auto& region) { return region->spec().id == id; });
  return found == regions_.end() ? nullptr : found->get();
}

/// A queue pair is one region's: the last one's that was made. So nobody hears from a region of a
/// former life of its own, and who only says that it has the queue pair takes it from nobody.
void RegionTable::give_queue_pair(const Region& heard, std::uint16_t member, frame::Instant now) {
  Region* owner = nullptr;
  for (const auto& region : regions_) {
    if (region->has_heard_same(heard, member)) {
      if (owner != nullptr) {
        owner->silence(now);
      }
      owner = region.get();
    }
  }
}

void RegionTable::poll(frame::Instant now) {
  for (const auto& region : regions_) {
    region->poll(now);
  }
  std::erase_if(regions_, [&](const auto& region) {
    const bool is_over = region->is_over(now);
    if (is_over) {
      forget(*region);
    }
    return is_over;
  });
}

void RegionTable::forget(const Region& region) {
  for (const MemberBirth& born : region.birth().members) {
    by_queue_pair_.erase(born.queue_pair);
  }
}

std::uint64_t RegionTable::next_timer() const {
  std::uint64_t next = kNever;
  for (const auto& region : regions_) {
    next = std::min(next, region->next_timer());
  }
  return next;
}

std::uint64_t RegionTable::held() const {
  std::uint64_t frames = 0;
  for (const auto& region : regions_) {
    frames += region->held();
  }
  return frames;
}

} // namespace weir::region
