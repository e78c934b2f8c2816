// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"

#include <algorithm>
#include <cstdint>

namespace weir::lcore {

/// Which traffic class has the next turn on a link (protocol I12): ring traffic, unless the other
/// class has earned a turn. While both wait, the other class gets an eighth of the link's time,
/// give or take one frame, and ring traffic the rest: a ring that fills its links starves nobody,
/// and nobody's bulk slows a ring down by more than that eighth. AllReduce-Switch (TCAS-I'21, §IV)
/// has its arbiters go round robin between aggregated and forwarded frames; half of the link is
/// more than what is not urgent needs.
///
/// A deficit counter in bytes: frames of different length take their true share.
class TxArbiter {
 public:
  static constexpr std::uint64_t kShare = 8; // the other class has one part in so many

  /// While both classes wait: who is next, by the length (without FCS) of the other class's frame.
  frame::TrafficClass next(std::uint32_t other_bytes) const {
    return credit_ >= price_of(other_bytes) ? frame::TrafficClass::other
                                            : frame::TrafficClass::ring;
  }

  /// While both classes wait: a frame of this class and length goes.
  void charge(frame::TrafficClass traffic, std::uint32_t bytes) {
    if (traffic == frame::TrafficClass::ring) {
      credit_ += on_wire(bytes);
    } else {
      credit_ -= std::min(credit_, price_of(bytes));
    }
  }

  /// No other traffic waits: what is not wanted is not saved up.
  void forget() { credit_ = 0; }

 private:
  /// FCS, preamble and the gap between frames take time as well (IEEE 802.3 §4.2.3).
  static constexpr std::uint64_t on_wire(std::uint32_t bytes) { return bytes + 24u; }

  static constexpr std::uint64_t price_of(std::uint32_t other_bytes) {
    return (kShare - 1) * on_wire(other_bytes);
  }

  std::uint64_t credit_ = 0; // bytes on the wire that ring traffic had while the other class waited
};

} // namespace weir::lcore
