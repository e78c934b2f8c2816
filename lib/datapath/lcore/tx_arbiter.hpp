// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"

#include <algorithm>
#include <cstdint>

namespace weir::lcore {

/// Decides which traffic class has the next turn on a link (protocol I12): ring traffic, unless the
/// other class has earned a turn. While both wait, the other class gets an eighth of the link's
/// time, give or take one frame. So ring traffic cannot starve other traffic, and bulk traffic
/// cannot slow a ring by more than an eighth. The arbiters of AllReduce-Switch (TCAS-I'21, §IV) go
/// round robin between aggregated and forwarded frames, which would give other traffic half of the
/// link.
///
/// A deficit counter in bytes: frames of different lengths get their true share.
class TxArbiter {
 public:
  static constexpr std::uint64_t kShare = 8; // the other class gets one part in this many

  /// For when both classes wait: who is next. `other_bytes` is the length of the other class's next
  /// frame, without FCS.
  frame::TrafficClass next(std::uint32_t other_bytes) const {
    return credit_ >= price_of(other_bytes) ? frame::TrafficClass::other
                                            : frame::TrafficClass::ring;
  }

  /// For when both classes wait: a frame of this class and length leaves.
  void charge(frame::TrafficClass traffic, std::uint32_t bytes) {
    if (traffic == frame::TrafficClass::ring) {
      credit_ += on_wire(bytes);
    } else {
      credit_ -= std::min(credit_, price_of(bytes));
    }
  }

  /// No other traffic waits. Unused turns are not saved.
  void forget() { credit_ = 0; }

 private:
  /// FCS, preamble and interframe gap take time as well (IEEE 802.3 §4.2.3).
  static constexpr std::uint64_t on_wire(std::uint32_t bytes) { return bytes + 24u; }

  static constexpr std::uint64_t price_of(std::uint32_t other_bytes) {
    return (kShare - 1) * on_wire(other_bytes);
  }

  // Bytes on the wire that ring traffic sent while the other class waited.
  std::uint64_t credit_ = 0;
};

} // namespace weir::lcore
