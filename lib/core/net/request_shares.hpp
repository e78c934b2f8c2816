// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace weir::net {

/// Lets so many requests pass in a second. Each name that has asked within the last ten seconds has
/// an equal part of them, which the others cannot take, and the smallest part however many ask.
/// After a second of rest it has a second's at once. Any thread may use it.
class RequestShares {
 public:
  using Clock = std::chrono::steady_clock;

  /// HoldRing takes two.
  static constexpr double kSmallestPart = 4;

  explicit RequestShares(double per_second, double smallest_part = kSmallestPart)
      : per_second_(per_second), smallest_part_(smallest_part) {}

  bool lets_pass(const std::string& name, Clock::time_point now);

 private:
  struct Part {
    double left = 0;
    Clock::time_point last{}; // question
  };

  Part& part_of(const std::string& name, Clock::time_point now);
  double size_of_part() const;

  const double per_second_;
  const double smallest_part_;
  std::mutex mutex_; // guards all below
  std::map<std::string, Part> parts_;
};

} // namespace weir::net
