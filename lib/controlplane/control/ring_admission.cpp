// SPDX-License-Identifier: BSD-3-Clause
#include "control/ring_admission.hpp"

#include "stage/ring_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace weir::control {
namespace {

/// Of slots and cached results.
std::size_t slot_bytes_of(const ring::Ring& ring) {
  return stage::dimensions_of(ring).bytes();
}

ring::RingSet set_with(const ring::RingSet& set, const ring::RingSpec& spec) {
  try {
    return set.with(spec);
  } catch (const std::invalid_argument& error) {
    throw NoRoomForRing(
        fmt::format("ring {}: {}; rings now: {}", spec.id, error.what(), ids_of(set)));
  }
}

} // namespace

std::string ids_of(const ring::RingSet& set) {
  std::vector<std::uint32_t> ids;
  for (const std::uint16_t ring : set.present()) {
    ids.push_back(set.rings()[ring].spec().id);
  }
  return ids.empty() ? "there is none" : fmt::format("{}", fmt::join(ids, ", "));
}

RingAdmission::RingAdmission(const ring::RingSet& now, const Placement& placement,
                             const Bounds& bounds, Free free)
    : rings_(now), placement_(placement), bounds_(bounds), free_(std::move(free)) {}

void RingAdmission::withdraw(std::uint16_t ring) {
  const ring::Ring& gone = rings_.rings()[ring];
  free_.places[placement_.worker_of_ring[ring]] += gone.senders();
  free_.memory += slot_bytes_of(gone);
  rings_ = rings_.without(ring);
}

void RingAdmission::change(std::span<const ring::RingSpec> specs) {
  try {
    rings_ = rings_.with_changed(specs);
  } catch (const std::invalid_argument& error) {
    throw RingRefused(error.what());
  }
}

std::size_t RingAdmission::add(const ring::RingSpec& spec) {
  const ring::Ring ring(spec);
  ring::RingSet next = set_with(rings_, spec);
  bounds_.tenants.check(ring, rings_);
  bounds_.budget.check(ring, rings_);
  const std::size_t lcore = worker_for(ring);
  RingBudget::check_memory(ring, rings_, free_.memory);
  const std::uint16_t index = rings_.next_index();
  placement_.assign(index, next, lcore);
  assert(free_.places[lcore] >= ring.senders() && free_.memory >= slot_bytes_of(ring));
  free_.places[lcore] -= ring.senders();
  free_.memory -= slot_bytes_of(ring);
  rings_ = std::move(next);
  return lcore;
}

std::size_t RingAdmission::worker_for(const ring::Ring& ring) const {
  try {
    const std::size_t lcore = control::worker_for(placement_, rings_, ring);
    if (free_.places[lcore] < ring.senders()) {
      throw std::invalid_argument(
          fmt::format("ring {}: lcore {} has no places for {} members more; allowed: withdraw one "
                      "of its rings, or configure a larger spare.members",
                      ring.spec().id, placement_.lcores[lcore].id, ring.senders()));
    }
    return lcore;
  } catch (const std::invalid_argument& error) {
    throw RingRefused(error.what());
  }
}

} // namespace weir::control
