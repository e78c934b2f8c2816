// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace weir::host {

/// An order to a thread that forms a group: give up. It looks for it at least every
/// StallTimer::kLookPeriod.
class StopOrder {
 public:
  /// From any thread. Never blocks. The first reason counts.
  void give(std::string_view why);

  bool is_given() const { return is_given_; }

  std::string why() const;

  /// Error (aborted) about the rank that got the order. Once it is given.
  Error error_of(std::uint16_t rank) const;

  /// Throws that error if it is given.
  void obey(std::uint16_t rank) const;

 private:
  mutable std::mutex mutex_;
  std::string why_; // guarded by the mutex
  std::atomic<bool> is_given_ = false;
};

} // namespace weir::host
