// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/time.hpp"
#include "recovery/smoothed_time.hpp"

#include <cstdint>

namespace weir::netsim {

/// The time until an acknowledgement, smoothed as in RFC 6298 §2. One packet at a time is timed,
/// and none while packets are sent again: their acknowledgement may be for either transmission
/// (Karn and Partridge, SIGCOMM'87).
class RoundTrip {
 public:
  /// A packet leaves for the first time.
  void sent(std::uint32_t packet, Time now) {
    if (!is_timing_) {
      is_timing_ = true;
      timed_ = packet;
      since_ = now;
    }
  }

  /// Packets are sent again.
  void sent_again() { is_timing_ = false; }

  enum class Sample : std::uint8_t { none, taken };

  /// All packets before `end` have arrived.
  Sample acknowledged(std::uint32_t end, Time now) {
    if (!is_timing_ || end <= timed_) {
      return Sample::none;
    }
    is_timing_ = false;
    smoothed_.take(now - since_);
    return Sample::taken;
  }

  /// recovery::SmoothedTime::timeout.
  Time timeout(Time granularity) const { return smoothed_.timeout(granularity); }

 private:
  bool is_timing_ = false;
  std::uint32_t timed_ = 0;
  Time since_ = 0;
  recovery::SmoothedTime smoothed_;
};

} // namespace weir::netsim
