// SPDX-License-Identifier: BSD-3-Clause
#include "stage/worker.hpp"

#include <cassert>
#include <set>
#include <utility>

namespace weir::stage {

Worker::Worker(const ring::CurrentRings& current, std::vector<std::uint16_t> rings,
               const Settings& settings, l2::Bridge& bridge, Forward& forward,
               frame::FrameCounters& counters)
    : state_(current, std::move(rings), settings, bridge, forward, counters) {
  follow_rings();
}

/// To be called when other rings belong to the worker.
void Worker::follow_rings() {
  pipeline_.queue.share_among(ring_groups());
  std::size_t slot_bytes = 0;
  for (const std::uint16_t ring : state_.owned) {
    slot_bytes += state_.rings[ring]->slots.state_bytes();
  }
  pipeline_.cached_path.expect_slots(slot_bytes);
}

/// Number of ring groups that the worker's rings are in.
std::size_t Worker::ring_groups() const {
  std::set<std::uint16_t> ring_groups;
  for (const std::uint16_t ring : state_.owned) {
    ring_groups.insert(state_.current->ring_group_of(ring));
  }
  return ring_groups.size();
}

void Worker::follow_set() {
  state_.rings.resize(state_.current->rings().size());
  state_.schedule.resize(state_.current->rings().size());
  pipeline_.recover.resize(state_.current->rings().size());
  pipeline_.queue.follow_ring_groups();
}

void Worker::adopt(std::uint16_t ring, WorkerRing room) {
  follow_set();
  state_.incarnations.adopt(ring, std::move(room.connections));
  assert(!state_.rings[ring]);
  state_.rings[ring].emplace(std::move(room.state));
  state_.owned.push_back(ring);
  follow_rings();
}

void Worker::change_ring(std::uint16_t ring, frame::Instant now) {
  pipeline_.classify.update_ports(ring, now);
  state_.schedule.expect(ring, now.ns); // a timer that was off may be due
}

void Worker::set_ports_down(l2::PortSet ports, frame::Instant now) {
  state_.ports_down = ports;
  for (const std::uint16_t ring : state_.owned) {
    state_.schedule.expect(ring, now.ns); // timers that a dead link has stopped may be due
  }
}

WorkerRing Worker::withdraw_ring(std::uint16_t ring, frame::Instant now) {
  assert(state_.rings[ring]);
  auto connections = pipeline_.classify.withdraw_ring(ring, now);
  WorkerRing room(std::move(*state_.rings[ring]), std::move(connections));
  state_.rings[ring].reset();
  state_.schedule.forget(ring);
  std::erase(state_.owned, ring);
  follow_rings();
  return room;
}

std::uint64_t Worker::held() const {
  std::uint64_t frames = state_.incarnations.waiting_hellos() + regions().held();
  for (const std::uint16_t ring : state_.owned) {
    frames += state_.rings[ring]->slots.held();
  }
  return frames;
}

} // namespace weir::stage
