// SPDX-License-Identifier: BSD-3-Clause
#include "stage/worker.hpp"

#include <set>
#include <utility>

namespace weir::stage {
namespace {

RingStates states_of(const ring::RingSet& set, const std::vector<std::uint16_t>& owned,
                     std::uint16_t spare, std::pmr::memory_resource* memory) {
  RingStates rings;
  rings.reserve(set.rings().size() + spare);
  rings.resize(set.rings().size());
  for (const std::uint16_t ring : owned) {
    rings[ring].emplace(set.rings()[ring], memory);
  }
  return rings;
}

} // namespace

Worker::Worker(const ring::CurrentRings& current, std::vector<std::uint16_t> rings,
               const Settings& settings, l2::Bridge& bridge, Forward& forward,
               frame::FrameCounters& counters)
    : current_(current), owned_(std::move(rings)),
      rings_(states_of(*current, owned_, settings.classifier.spare_rings, settings.memory)),
      schedule_(current->rings().size()), incarnations_(current, owned_, settings.classifier),
      classifier_(current, incarnations_, settings.classifier,
                  [this](const ring::RingChild& sender) {
                    return rings_[sender.ring]->slots.holds(sender.child);
                  }),
      lines_(settings.queue_room),
      recover_(current, incarnations_, rings_, schedule_, lines_, forward),
      timers_(current, incarnations_, rings_, schedule_, recover_),
      emit_(current, incarnations_, rings_, reductions_, schedule_, forward),
      reduce_(current, settings.level, settings.helpers, incarnations_, rings_, reductions_, emit_),
      aggregate_(rings_, reduce_, emit_, recover_, forward),
      flow_cache_(current, conn::Incarnations::children_of(*current, owned_, settings.classifier),
                  settings.classifier.hash_key),
      classify_(classifier_, incarnations_, rings_, bridge, flow_cache_, aggregate_, emit_,
                recover_, timers_, forward, counters),
      queue_(lines_, current, rings_, classify_, forward),
      cached_path_(flow_cache_, rings_, queue_, forward, bridge, aggregate_, counters) {
  follow_rings();
}

/// To be called when other rings belong to the worker.
void Worker::follow_rings() {
  queue_.share_among(ring_groups());
  std::size_t slot_bytes = 0;
  for (const std::uint16_t ring : owned_) {
    slot_bytes += rings_[ring]->slots.state_bytes();
  }
  cached_path_.expect_slots(slot_bytes);
}

/// Number of ring groups that the worker's rings are in.
std::size_t Worker::ring_groups() const {
  std::set<std::uint16_t> ring_groups;
  for (const std::uint16_t ring : owned_) {
    ring_groups.insert(current_->ring_group_of(ring));
  }
  return ring_groups.size();
}

void Worker::adopt(std::uint16_t ring, WorkerRing room) {
  incarnations_.adopt(ring, std::move(room.connections));
  rings_.resize(current_->rings().size());
  schedule_.resize(current_->rings().size());
  recover_.resize(current_->rings().size());
  rings_[ring].emplace(std::move(room.state));
  owned_.push_back(ring);
  queue_.follow_ring_groups();
  follow_rings();
}

void Worker::change_ring(std::uint16_t ring, frame::Instant now) {
  classify_.update_ports(ring, now);
  schedule_.expect(ring, now.ns); // a timer that was off may be due
}

WorkerRing Worker::withdraw_ring(std::uint16_t ring, frame::Instant now) {
  auto connections = classify_.withdraw_ring(ring, now);
  WorkerRing room(std::move(*rings_[ring]), std::move(connections));
  rings_[ring].reset();
  schedule_.forget(ring);
  std::erase(owned_, ring);
  follow_rings();
  return room;
}

std::uint64_t Worker::held() const {
  std::uint64_t frames = incarnations_.waiting_hellos();
  for (const std::uint16_t ring : owned_) {
    frames += rings_[ring]->slots.held();
  }
  return frames;
}

} // namespace weir::stage
