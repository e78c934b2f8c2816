// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace weir::rpc {

/// Lets so many requests pass in a second. Each name that has asked within the last ten seconds has
/// an equal part of them, which the others cannot take. After a second of rest it has a second's at
/// once. Any thread may use it.
class RequestShares {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RequestShares(double per_second) : per_second_(per_second) {}

  bool lets_pass(const std::string& name, Clock::time_point now);

 private:
  struct Part {
    double left = 0;
    Clock::time_point last{}; // question
  };

  Part& part_of(const std::string& name, Clock::time_point now);
  double size_of_part() const;

  const double per_second_;
  std::mutex mutex_; // guards all below
  std::map<std::string, Part> parts_;
};

} // namespace weir::rpc
