// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lcore/handoff.hpp"

#include <array>
#include <span>
#include <utility>

namespace weir::lcore {

/// The sending side of a Handoff that is used often: values go over in bursts, so that the two
/// lcores do not take a ring's cache lines from each other for every one. Whoever puts something in
/// must flush before he rests.
template <typename Value>
class Outbox {
 public:
  explicit Outbox(Handoff<Value>& ring) : ring_(&ring) {}

  /// `reject` is called with each value that the ring has no room for, in order.
  template <typename Reject>
  void put(const Value& value, Reject&& reject) {
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

  /// Takes back what has not gone over; `reject` gets it.
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
