// SPDX-License-Identifier: BSD-3-Clause
#include "control/ring_budget.hpp"

#include "control/short_list.hpp"
#include "stage/ring_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {
namespace {

/// How much of one kind a ring takes.
using Measure = std::uint64_t (*)(const ring::Ring& ring);

std::uint64_t members_of(const ring::Ring& ring) {
  return ring.senders();
}

std::uint64_t bytes_of(const ring::Ring& ring) {
  return stage::dimensions_of(ring).bytes();
}

std::uint64_t taken(const ring::RingSet& present, Measure measure) {
  std::uint64_t sum = 0;
  for (const std::uint16_t ring : present.present()) {
    sum += measure(present.rings()[ring]);
  }
  return sum;
}

/// "ring 7: 4096, ring 8: 512": the rings that take most.
std::string holders(const ring::RingSet& present, Measure measure) {
  std::vector<std::uint16_t> rings = present.present();
  std::ranges::sort(rings, std::greater{},
                    [&](std::uint16_t ring) { return measure(present.rings()[ring]); });
  return list_of(rings, [&](std::uint16_t ring) {
    return fmt::format("ring {}: {}", present.rings()[ring].spec().id,
                       measure(present.rings()[ring]));
  });
}

struct Kind {
  std::string_view name;
  std::string_view remedy;
  Measure measure;
};

constexpr Kind kMembers{"places for members", "a larger spare.members", members_of};
constexpr Kind kFrames{"frames (2N x L x (H-1), and hellos)",
                       "a larger spare.frames, a smaller window or shorter messages",
                       frames_held_by};
constexpr Kind kBytes{"bytes for slots and cached results",
                      "more memory for EAL (-m or --socket-mem under eal.options, or hugepages), a "
                      "smaller window or shorter messages",
                      bytes_of};

void refuse(const ring::Ring& ring, const ring::RingSet& present, const Kind& kind,
            std::uint64_t free) {
  throw NoRoomForRing(fmt::format(
      "ring {}: needs {} {}, {} are free; held by {}; allowed: withdraw a ring, or configure {}",
      ring.spec().id, kind.measure(ring), kind.name, free, holders(present, kind.measure),
      kind.remedy));
}

} // namespace

RingRoom room_of(const std::vector<const ring::Ring*>& rings) {
  RingRoom room{.rings = rings.size()};
  for (const ring::Ring* const ring : rings) {
    room.members += members_of(*ring);
    room.frames += frames_held_by(*ring);
  }
  return room;
}

RingBudget::RingBudget(const config::SpareConfig& spare, const ring::RingSet& at_start,
                       const MemoryPlan& plan)
    : rings_(at_start.rings().size() + spare.rings),
      members_(taken(at_start, members_of) + spare.members), frames_(plan.ring_frames) {}

void RingBudget::check(const ring::Ring& ring, const ring::RingSet& present) const {
  if (present.next_index() >= rings_) {
    throw NoRoomForRing(fmt::format(
        "ring {}: there are {} rings, as many as this switch has room for; allowed: withdraw a "
        "ring, or configure a larger spare.rings",
        ring.spec().id, present.present().size()));
  }
  const auto check_one = [&](const Kind& kind, std::uint64_t all) {
    assert(all >= taken(present, kind.measure));
    const std::uint64_t free = all - taken(present, kind.measure);
    if (kind.measure(ring) > free) {
      refuse(ring, present, kind, free);
    }
  };
  check_one(kMembers, members_);
  check_one(kFrames, frames_);
}

void RingBudget::check_memory(const ring::Ring& ring, const ring::RingSet& present,
                              std::size_t free) {
  if (bytes_of(ring) > free) {
    refuse(ring, present, kBytes, free);
  }
}

} // namespace weir::control
