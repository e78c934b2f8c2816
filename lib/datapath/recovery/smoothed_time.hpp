// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::recovery {

/// A smoothed time and its mean deviation (RFC 6298 §2). The unit is the caller's.
class SmoothedTime {
 public:
  void take(std::uint64_t sample) {
    if (smoothed_ == 0) {
      smoothed_ = sample;
      deviation_ = sample / 2;
      return;
    }
    const std::uint64_t error = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    deviation_ = (3 * deviation_ + error) / 4;
    smoothed_ = (7 * smoothed_ + sample) / 8;
  }

  /// The smoothed time plus the larger of four deviations and `granularity`, the interval at which
  /// timers are checked. 0 before the first sample.
  std::uint64_t timeout(std::uint64_t granularity) const {
    return smoothed_ == 0 ? 0 : smoothed_ + std::max(granularity, 4 * deviation_);
  }

 private:
  std::uint64_t smoothed_ = 0;
  std::uint64_t deviation_ = 0;
};

} // namespace weir::recovery
