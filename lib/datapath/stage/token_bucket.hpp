// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace weir::stage {

/// Lets so many packets a second pass, and a few more after a pause. Whole numbers only, so that no
/// packet is lost or won by rounding however often it is asked.
class TokenBucket {
 public:
  /// Packets a second. Larger ones are no limit to any worker.
  static constexpr std::uint64_t kMostRate = 1'000'000'000;

  /// `rate` is 1 .. kMostRate, in packets a second; `depth` at least 1, in packets. It begins full.
  TokenBucket(std::uint64_t rate, std::uint64_t depth, std::uint64_t now_ns)
      : rate_(rate), full_(depth * kToken), level_(full_), at_ns_(now_ns) {}

  /// What has been saved up stays, as far as it fits.
  void set(std::uint64_t rate, std::uint64_t depth, std::uint64_t now_ns) {
    refill(now_ns);
    rate_ = rate;
    full_ = depth * kToken;
    level_ = std::min(level_, full_);
  }

  /// Tokens come with time. A time before the last one brings none: two CPUs' clocks may differ a
  /// little.
  void refill(std::uint64_t now_ns) {
    if (now_ns <= at_ns_) {
      return;
    }
    const std::uint64_t passed = now_ns - at_ns_;
    at_ns_ = now_ns;
    assert(level_ <= full_);
    const std::uint64_t missing = full_ - level_;
    level_ = passed > missing / rate_ ? full_ : level_ + passed * rate_;
  }

  bool has_token() const { return level_ >= kToken; }

  std::uint64_t tokens() const { return level_ / kToken; }

  /// There must be one.
  void take() {
    assert(has_token());
    level_ -= kToken;
  }

  std::uint64_t rate() const { return rate_; }

 private:
  static constexpr std::uint64_t kToken = 1'000'000'000; // a packet; a nanosecond brings `rate_`

  std::uint64_t rate_;
  std::uint64_t full_;
  std::uint64_t level_;
  std::uint64_t at_ns_;
};

} // namespace weir::stage
