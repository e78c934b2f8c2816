// SPDX-License-Identifier: BSD-3-Clause
#include "region/region_table.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace weir::region {

std::unique_ptr<Region> RegionTable::make(RegionSpec spec, RegionBirth birth) const {
  return std::make_unique<Region>(std::move(spec), std::move(birth), outlet_);
}

Region& RegionTable::adopt(std::unique_ptr<Region> made) {
  made->take_line(free_line());
  Region& region = *regions_.emplace_back(std::move(made));
  forgotten_.reserve(forgotten_.size() + regions_.size());
  std::uint16_t member = 0;
  for (const MemberBirth& born : region.birth().members) {
    assert(!has_queue_pair(born.queue_pair));
    places_.push_back({born.queue_pair, &region, member++});
  }
  std::ranges::sort(places_, {}, &Place::queue_pair);
  return region;
}

/// The lowest one: lines stay, and regions come and go.
std::uint16_t RegionTable::free_line() const {
  std::uint16_t line = 0;
  while (std::ranges::any_of(regions_,
                             [line](const auto& region) { return region->line() == line; })) {
    ++line;
  }
  return line;
}

const Region* RegionTable::region_of(const frame::Frame& frame) const {
  const auto found = place_of(frame.packet.destination_qp);
  return found != places_.end() && found->region->is_from(frame, found->member) ? found->region
                                                                                : nullptr;
}

const Region* RegionTable::user_of(std::uint16_t port) const {
  const auto found = std::ranges::find_if(
      regions_, [port](const auto& region) { return region->speaks_by(port); });
  return found == regions_.end() ? nullptr : found->get();
}

std::vector<RegionTable::Place>::const_iterator
RegionTable::place_of(std::uint32_t queue_pair) const {
  const auto found = std::ranges::lower_bound(places_, queue_pair, {}, &Place::queue_pair);
  return found != places_.end() && found->queue_pair == queue_pair ? found : places_.end();
}

std::uint64_t RegionTable::accept(frame::Frame& frame, frame::Instant now) {
  const auto found = place_of(frame.packet.destination_qp);
  if (found == places_.end()) {
    outlet_.drop(frame, DropReason::region_unknown, now);
    return kNever;
  }
  const auto [queue_pair, region, member] = *found;
  const bool had_said_hello = region->has_heard(member);
  region->accept(frame, member, now);
  if (!had_said_hello && region->has_heard(member)) {
    give_queue_pair(*region, member, now);
    region->open_if_complete(now);
    return next_timer(); // of the regions, too, that it has silenced
  }
  return region->next_timer();
}

/// The lcore's vector keeps its room.
std::vector<std::unique_ptr<Region>> RegionTable::take_forgotten() {
  std::vector<std::unique_ptr<Region>> taken;
  taken.reserve(forgotten_.size());
  std::ranges::move(forgotten_, std::back_inserter(taken));
  forgotten_.clear();
  return taken;
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
  for (std::size_t place = regions_.size(); place != 0; --place) {
    if (regions_[place - 1]->is_over(now)) {
      forget(*regions_[place - 1]);
    }
  }
}

void RegionTable::forget(const Region& region) {
  const auto found = std::ranges::find(regions_, &region, &std::unique_ptr<Region>::get);
  if (found == regions_.end() || !region.has_let_go()) {
    return;
  }
  std::erase_if(places_, [&](const Place& place) { return place.region == &region; });
  assert(forgotten_.size() < forgotten_.capacity());
  forgotten_.push_back(std::move(*found));
  regions_.erase(found);
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
