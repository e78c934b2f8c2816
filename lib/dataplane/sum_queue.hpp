// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dataplane/summation.hpp"
#include "dataplane/trace.hpp"
#include "weir/ina.hpp"

#include <array>
#include <cstdint>

namespace weir::dataplane {

/// The sums that a worker waits for, in the order in which their slots were completed: results
/// leave in this order, whoever makes the sums and whenever (protocol I7).
class SumQueue {
 public:
  static constexpr std::uint32_t kMost = 64;

  struct Entry {
    Summation sum;
    TraceRecord record; // of the results; its rank is to be filled in
    std::uint32_t slot = 0;
    Collective collective{};
  };

  bool is_empty() const { return head_ == tail_; }

  bool is_full() const { return tail_ - head_ == kMost; }

  Entry& oldest() { return entries_[head_ % kMost]; }

  /// Room for one more, when it is not full.
  Entry& add() { return entries_[tail_++ % kMost]; }

  void remove_oldest() { ++head_; }

 private:
  std::array<Entry, kMost> entries_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

} // namespace weir::dataplane
