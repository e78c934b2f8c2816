// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/placement.hpp"
#include "control/ring_budget.hpp"
#include "control/tenants.hpp"
#include "ring/ring_set.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::control {

/// The rings as they would be if some went and others came, in this order. It finds what does not
/// fit before the first of them is touched.
class RingAdmission {
 public:
  /// What is free before.
  struct Free {
    std::vector<std::uint32_t> places; // for members' connections, by lcore of the placement
    std::size_t memory = 0;            // bytes that EAL can give
  };

  /// What bounds rings. Both outlive the admission.
  struct Bounds {
    const RingBudget& budget;
    const Tenants& tenants;
  };

  RingAdmission(const ring::RingSet& now, const Placement& placement, const Bounds& bounds,
                Free free);

  /// The ring with this index goes.
  void withdraw(std::uint16_t ring);

  /// As ring::RingSet::with_changed. Throws RingRefused.
  void change(std::span<const ring::RingSpec> specs);

  /// Returns the lcore that would work for the ring. Throws RingRefused, NoRoomForRing.
  std::size_t add(const ring::RingSpec& spec);

 private:
  std::size_t worker_for(const ring::Ring& ring) const;

  ring::RingSet rings_;
  Placement placement_;
  Bounds bounds_;
  Free free_;
};

/// "7, 9", or that there is none.
std::string ids_of(const ring::RingSet& set);

} // namespace weir::control
