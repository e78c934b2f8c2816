// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

namespace weir::rpc {

/// Lets so many requests pass in a second, and as many at once after a second of rest.
class RequestRate {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RequestRate(double per_second) : per_second_(per_second), left_(per_second) {}

  bool lets_pass(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    const double rested = std::chrono::duration<double>(now - last_).count();
    left_ = std::min(per_second_, left_ + std::max(rested, 0.0) * per_second_);
    last_ = now;
    if (left_ < 1) {
      return false;
    }
    left_ -= 1;
    return true;
  }

 private:
  const double per_second_;
  std::mutex mutex_;
  double left_;
  Clock::time_point last_{};
};

} // namespace weir::rpc
