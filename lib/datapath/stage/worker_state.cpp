// SPDX-License-Identifier: BSD-3-Clause
#include "stage/worker_state.hpp"

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

WorkerState::WorkerState(const ring::CurrentRings& current_rings,
                         std::vector<std::uint16_t> own_rings, const WorkerSettings& settings,
                         l2::Bridge& l2_bridge, Forward& next, frame::FrameCounters& frame_counters)
    : current(current_rings), bridge(l2_bridge), forward(next), counters(frame_counters),
      level(settings.level), helpers(settings.helpers), peers(settings.peers),
      owned(std::move(own_rings)),
      rings(states_of(*current, owned, settings.classifier.spare_rings, settings.memory)),
      schedule(current->rings().size()), incarnations(current, owned, settings.classifier),
      classifier(current, incarnations, settings.classifier,
                 [this](const ring::RingChild& sender) {
                   return rings[sender.ring]->slots.holds(sender.child);
                 }),
      lines(settings.queue_room),
      flow_cache(current, conn::Incarnations::children_of(*current, owned, settings.classifier),
                 settings.classifier.hash_key),
      farewells(conn::Incarnations::children_of(*current, owned, settings.classifier),
                settings.classifier.hash_key) {}

} // namespace weir::stage
