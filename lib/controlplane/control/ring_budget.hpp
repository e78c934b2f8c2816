// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/memory.hpp"
#include "ring/ring_set.hpp"

#include <cstdint>
#include <stdexcept>
#include <vector>

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

/// What rings take, or may take.
struct RingRoom {
  std::uint64_t rings = 0;
  std::uint64_t members = 0; // children, and one for a parent
  std::uint64_t frames = 0;  // that their slots can hold
};

/// What these rings take.
RingRoom room_of(const std::vector<const ring::Ring*>& rings);

/// What rings may take of what the switch set aside at start: indices, places for members, frames.
class RingBudget {
 public:
  RingBudget(const config::SpareConfig& spare, const ring::RingSet& at_start,
             const MemoryPlan& plan);

  /// Throws NoRoomForRing when one ring more would take too much: what it needs, what there is, and
  /// which rings hold it.
  void check(const ring::Ring& ring, const ring::RingSet& present) const;

  /// All of it.
  RingRoom all() const { return {rings_, members_, frames_}; }

  /// The same for the memory of slots and cached results, of which EAL has `free` bytes.
  static void check_memory(const ring::Ring& ring, const ring::RingSet& present, std::size_t free);

 private:
  std::size_t rings_;
  std::uint64_t members_;
  std::uint64_t frames_;
};

} // namespace weir::control
