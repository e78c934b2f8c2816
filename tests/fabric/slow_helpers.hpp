// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "slot/reduction.hpp"
#include "world.hpp"

#include <cstdint>
#include <vector>

namespace weir::fabric {

/// Other lcores that make a worker's sums: some at once, some late, in any order, and some not
/// before the worker has done it itself. One switch has them or has none.
class SlowHelpers : public slot::ReductionHelpers {
 public:
  SlowHelpers(World& world, std::uint64_t seed, Coverage& coverage);

  /// Draws whether the next switch has helpers; what the last one asked for is forgotten. Returns
  /// what its worker is to be told.
  slot::ReductionHelpers* for_next_switch();

  bool ask(slot::Reduction& sum) override;

  /// One of the helpers comes round to a sum.
  void make_one();

 private:
  World& world_;
  Dice dice_; // its own: a seed's other draws stay what they are
  Coverage& coverage_;
  std::vector<slot::Reduction*> asked_; // for these
};

} // namespace weir::fabric
