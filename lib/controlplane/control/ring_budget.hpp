// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/memory.hpp"
#include "ring/ring_set.hpp"

#include <stdexcept>

namespace weir::control {

/// A ring cannot be added. what() says why and what would be allowed.
class RingRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// There is no room for the ring now; there is when others are withdrawn.
class NoRoomForRing : public RingRefused {
 public:
  using RingRefused::RingRefused;
};

/// What rings may take of what the switch set aside at start: indices, places for members, frames.
class RingBudget {
 public:
  RingBudget(const config::SpareConfig& spare, const ring::RingSet& at_start,
             const MemoryPlan& plan);

  /// Throws NoRoomForRing when one ring more would take too much: what it needs, what there is, and
  /// which rings hold it.
  void check(const ring::Ring& ring, const ring::RingSet& present) const;

  /// The same for the memory of slots and cached results, of which EAL has `free` bytes.
  static void check_memory(const ring::Ring& ring, const ring::RingSet& present, std::size_t free);

 private:
  std::size_t rings_;
  std::uint64_t members_;
  std::uint64_t frames_;
};

} // namespace weir::control
