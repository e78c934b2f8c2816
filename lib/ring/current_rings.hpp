// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_set.hpp"

#include <memory>
#include <utility>

namespace weir::ring {

/// The set of rings that all lcores use. Control writes it while all lcores are stopped between two
/// rounds. At any other time everybody may read it, and it does not change.
class CurrentRings {
 public:
  explicit CurrentRings(RingSet first) : set_(std::make_shared<const RingSet>(std::move(first))) {}

  const RingSet& operator*() const { return *set_; }

  const RingSet* operator->() const { return set_.get(); }

  /// For who wants to keep the set after the next swap. Control must not swap meanwhile.
  std::shared_ptr<const RingSet> share() const { return set_; }

  /// Returns the previous set, which no lcore reads any more.
  std::shared_ptr<const RingSet> swap(std::shared_ptr<const RingSet> next) {
    return std::exchange(set_, std::move(next));
  }

 private:
  std::shared_ptr<const RingSet> set_;
};

} // namespace weir::ring
