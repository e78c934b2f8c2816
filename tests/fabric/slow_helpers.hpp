// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "slot/reduction.hpp"
#include "world.hpp"

#include <cstdint>
#include <vector>

namespace weir::fabric {

/// Other lcores that make a worker's reductions: some at once, some late, in any order, and some
/// only after the worker has made them. A switch has all of these or none.
class SlowHelpers : public slot::ReductionHelpers {
 public:
  /// Of the switch with this number.
  SlowHelpers(World& world, std::uint16_t node, std::uint64_t seed, Coverage& coverage);

  /// Draws whether the next switch has helpers, and forgets what the last one asked for. Returns
  /// the helpers for its worker.
  slot::ReductionHelpers* for_next_switch();

  bool ask(slot::Reduction& sum) override;

  /// One of the helpers tries to make a reduction.
  void make_one();

 private:
  World& world_;
  const std::uint16_t node_;
  Dice dice_; // its own, so that the seed's other draws do not change
  Coverage& coverage_;
  std::vector<slot::Reduction*> asked_; // reductions offered to the helpers
};

} // namespace weir::fabric
