// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/time.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace weir::netsim {

/// Durations in buckets whose width is 1/32 of their power of two.
class LatencyHistogram {
 public:
  void add(Time duration) {
    sum_ += duration;
    ++count_;
    ++buckets_[bucket_of(duration)];
  }

  Time mean() const { return count_ == 0 ? 0 : sum_ / count_; }

  /// The lower bound of the smallest bucket such that `per_mille` of a thousand durations are in it
  /// or below. 0 if there are no durations.
  Time quantile(std::uint64_t per_mille) const {
    const std::uint64_t wanted = (count_ * per_mille + 999) / 1000;
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      seen += buckets_[bucket];
      if (seen >= wanted && seen != 0) {
        return lower_bound_of(bucket);
      }
    }
    return 0;
  }

 private:
  static constexpr unsigned kSubBits = 5;
  static constexpr std::size_t kSub = std::size_t{1} << kSubBits;

  static std::size_t bucket_of(Time duration) {
    if (duration < kSub) {
      return static_cast<std::size_t>(duration);
    }
    const unsigned shift = static_cast<unsigned>(std::bit_width(duration)) - 1 - kSubBits;
    return (std::size_t{shift} + 1) * kSub + static_cast<std::size_t>((duration >> shift) - kSub);
  }

  static Time lower_bound_of(std::size_t bucket) {
    if (bucket < kSub) {
      return bucket;
    }
    return (bucket % kSub + kSub) << (bucket / kSub - 1);
  }

  std::array<std::uint64_t, (64 - kSubBits + 1) * kSub> buckets_{};
  Time sum_ = 0;
  std::uint64_t count_ = 0;
};

} // namespace weir::netsim
