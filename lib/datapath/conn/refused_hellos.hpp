// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "ring/ring_set.hpp"
#include "weir/reasons.hpp"
#include "wire/headers.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace weir::conn {

/// A hello of a tree's ring that the switch did not take, because the ring, or a cable, is not as
/// this switch knows it.
struct RefusedHello {
  wire::InaHeader header{};
  wire::IpAddress source;
  wire::IpAddress destination;
  std::uint16_t port = 0; // that it came by
  DropReason reason{};
  std::uint64_t at_ns = 0; // the last one
  std::uint64_t count = 0; // of the ring, by this port; 0: there is none
};

/// Whether a hello that is dropped for this reason may tell of such a difference.
constexpr bool tells_of_a_difference(DropReason reason) {
  switch (reason) {
  case DropReason::wrong_port:
  case DropReason::partial_flag:
  case DropReason::raw_from_switch:
  case DropReason::raw_from_parent:
  case DropReason::queue_pair_untold:
  case DropReason::ring_differs:
  case DropReason::range_differs:
  case DropReason::partial_of_unknown_ring:
  case DropReason::not_bridged:
    return true;
  default:
    return false;
  }
}

/// The last such hellos that one lcore has got: of each port, those of some rings. So nobody pushes
/// out what has come by another port. That lcore alone writes them.
class RefusedHellos {
 public:
  static constexpr std::size_t kRingsOfPort = 8;

  RefusedHellos() : places_(kPorts * kRingsOfPort) {}

  /// A frame that is dropped. Keeps it if it is a hello of a ring in a tree, or one for a ring that
  /// is not here, from a port to another switch.
  void note(const ring::RingSet& rings, const frame::Frame& frame, DropReason reason,
            std::uint64_t now_ns) {
    if (tells_of_a_difference(reason)) [[unlikely]] {
      note_difference(rings, frame, reason, now_ns);
    }
  }

  /// How many have come. Any thread may ask at any time.
  std::uint64_t count() const { return count_; }

  /// While the lcore stands still.
  std::vector<RefusedHello> all() const;

 private:
  static constexpr std::size_t kPorts = 64;

  void note_difference(const ring::RingSet& rings, const frame::Frame& frame, DropReason reason,
                       std::uint64_t now_ns);
  RefusedHello& place_for(std::uint16_t port, std::uint32_t ring);

  std::vector<RefusedHello> places_; // kRingsOfPort for each port
  frame::Count count_;
};

} // namespace weir::conn
