// SPDX-License-Identifier: BSD-3-Clause
#include "stage/worker.hpp"

#include <utility>

namespace weir::stage {
namespace {

RingStates states_of(const ring::RingDirectory& directory, const std::vector<std::uint16_t>& owned,
                     std::pmr::memory_resource* memory) {
  RingStates rings(directory.rings().size());
  for (const std::uint16_t ring : owned) {
    rings[ring].emplace(directory.rings()[ring], memory);
  }
  return rings;
}

} // namespace

Worker::Worker(const ring::RingDirectory& directory, std::vector<std::uint16_t> rings,
               const Settings& settings, l2::Bridge& bridge, Forward& forward,
               frame::FrameCounters& counters)
    : owned_(std::move(rings)), rings_(states_of(directory, owned_, settings.memory)),
      classifier_(
          directory, owned_, settings.classifier,
          [this](const ring::RingRank& rank) { return rings_[rank.ring]->slots.holds(rank.rank); }),
      emit_(directory, classifier_, rings_, reductions_, forward),
      reduce_(settings.level, settings.helpers, classifier_, rings_, reductions_, emit_),
      aggregate_(rings_, reduce_, emit_, forward),
      classify_(classifier_, rings_, bridge, aggregate_, emit_, forward, counters) {}

std::uint64_t Worker::held() const {
  std::uint64_t frames = classifier_.waiting_hellos();
  for (const std::uint16_t ring : owned_) {
    frames += rings_[ring]->slots.held();
  }
  return frames;
}

} // namespace weir::stage
