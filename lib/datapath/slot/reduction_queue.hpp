// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "slot/reduction.hpp"

#include <array>
#include <cassert>
#include <cstdint>

namespace weir::program {
class Operator;
}

namespace weir::slot {

/// What there is to count of a reduction beside its data.
enum class ReductionKind : std::uint8_t { usual, hello, by_operator };

/// The reductions that a worker waits for, in the order in which their slots were completed. A
/// ring's results leave in this order, whoever makes the reductions, and whenever (protocol I7).
class ReductionQueue {
 public:
  static constexpr std::uint32_t kMost = 64;

  struct Entry {
    Reduction reduction;
    std::uint16_t ring = 0;
    std::uint32_t slot = 0; // of the ring
    ReductionKind kind{};
    const program::Operator* by = nullptr; // of one by_operator
    // Left before its turn; only reductions of one ring must keep their order.
    bool has_left = false;
  };

  bool is_empty() const { return head_ == tail_; }

  bool is_full() const { return size() == kMost; }

  std::uint32_t size() const { return tail_ - head_; }

  /// Place 0 has the oldest one.
  Entry& at(std::uint32_t place) {
    assert(place < size());
    return entries_[(head_ + place) % kMost];
  }

  /// Adds one; the queue must not be full.
  Entry& add() {
    assert(!is_full());
    Entry& entry = entries_[tail_++ % kMost];
    entry.has_left = false;
    return entry;
  }

  void remove_oldest() {
    assert(!is_empty() && at(0).has_left);
    ++head_;
  }

 private:
  std::array<Entry, kMost> entries_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

} // namespace weir::slot
