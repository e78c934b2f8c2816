// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "l2/bridge.hpp"
#include "ring/ring.hpp"
#include "slot/slot_table.hpp"

#include <memory_resource>
#include <optional>
#include <vector>

namespace weir::stage {

/// What a ring's slots are sized to.
slot::SlotTable::Dimensions dimensions_of(const ring::Ring& ring);

/// A ring's state in the worker that owns it, except for its connections. Only one lcore uses it.
struct RingState {
  RingState(const ring::Ring& ring, std::pmr::memory_resource* memory);

  slot::SlotTable slots;
  frame::RingCounters counters;
  std::vector<l2::Pin> pins; // of the incarnation's children
};

/// By index in the set of rings; empty where another worker owns the ring.
using RingStates = std::vector<std::optional<RingState>>;

} // namespace weir::stage
