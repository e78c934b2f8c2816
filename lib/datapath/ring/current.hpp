// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace weir::ring {

/// A value that changes as a whole: control swaps it for another one while all lcores are stopped
/// between two rounds. At any other time everybody may read it.
template <typename Value>
class Current {
 public:
  explicit Current(Value first) : value_(std::make_shared<const Value>(std::move(first))) {}

  /// For lcores, and for control while it keeps others from swapping; number() too.
  const Value& operator*() const { return *value_; }

  const Value* operator->() const { return value_.get(); }

  /// For any thread at any time, and to keep the value after the next swap. Waits for no lcore.
  std::shared_ptr<const Value> share() const {
    const std::lock_guard lock(one_at_a_time_);
    return value_;
  }

  /// Which one it is: for who remembers what followed from it. Two values one after the other may
  /// have the same address.
  std::uint64_t number() const { return number_; }

  /// Returns the previous value, which no lcore reads any more.
  std::shared_ptr<const Value> swap(std::shared_ptr<const Value> next) {
    const std::lock_guard lock(one_at_a_time_);
    ++number_;
    return std::exchange(value_, std::move(next));
  }

 private:
  std::shared_ptr<const Value> value_;
  std::uint64_t number_ = 1;
  mutable std::mutex one_at_a_time_; // of those who share and swap
};

} // namespace weir::ring
