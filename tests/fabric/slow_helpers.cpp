// SPDX-License-Identifier: BSD-3-Clause
#include "slow_helpers.hpp"

namespace weir::fabric {
namespace {

constexpr Ppm kHasHelpers = 50 * kPercent;
constexpr Ppm kRefuses = 20 * kPercent;
constexpr Time kSlowest = 5'000; // ns; several packets come in that time

} // namespace

SlowHelpers::SlowHelpers(World& world, std::uint16_t node, std::uint64_t seed, Coverage& coverage)
    : world_(world), node_(node), dice_(~seed + node), coverage_(coverage) {}

slot::ReductionHelpers* SlowHelpers::for_next_switch() {
  asked_.clear();
  return dice_.chance(kHasHelpers) ? this : nullptr;
}

bool SlowHelpers::ask(slot::Reduction& sum) {
  if (dice_.chance(kRefuses)) {
    return false;
  }
  asked_.push_back(&sum);
  world_.events.push(
      {.time = world_.now + 1 + dice_.below(kSlowest), .kind = EventKind::helper, .place = node_});
  return true;
}

void SlowHelpers::make_one() {
  if (asked_.empty()) { // it belonged to another switch
    return;
  }
  const std::size_t chosen = dice_.below(asked_.size());
  if (asked_[chosen]->make()) {
    coverage_.hit(Happening::sums_by_helpers);
  } else {
    coverage_.hit(Happening::helpers_late);
  }
  asked_[chosen] = asked_.back();
  asked_.pop_back();
}

} // namespace weir::fabric
