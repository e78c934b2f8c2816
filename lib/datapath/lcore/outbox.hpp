// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lcore/handoff.hpp"

#include <array>
#include <cassert>
#include <span>
#include <utility>

namespace weir::lcore {

/// The sending side of a busy Handoff. It sends values in bursts, so that the two lcores do not
/// take the ring's cache lines from each other for each value. A caller that hands values
/// off must flush before it goes idle.
template <typename Value>
class Outbox {
 public:
  explicit Outbox(Handoff<Value>& ring) : ring_(&ring) {}

  /// Calls `reject` with each value that does not fit into the ring, in order.
  template <typename Reject>
  void handoff(const Value& value, Reject&& reject) {
    assert(count_ < kBurst);
    waiting_[count_++] = value;
    if (count_ == kBurst) {
      flush(reject);
    }
  }

  template <typename Reject>
  void flush(Reject&& reject) {
    const std::span<const Value> values(waiting_.data(), count_);
    count_ = 0;
    for (const Value& value : values.subspan(ring_->push(values))) {
      reject(value);
    }
  }

  /// Calls `reject` with each value that has not been sent.
  template <typename Reject>
  void discard(Reject&& reject) {
    for (const Value& value : std::span<const Value>(waiting_.data(), std::exchange(count_, 0))) {
      reject(value);
    }
  }

 private:
  static constexpr unsigned kBurst = 32;

  Handoff<Value>* ring_;
  std::array<Value, kBurst> waiting_;
  unsigned count_ = 0;
};

} // namespace weir::lcore
