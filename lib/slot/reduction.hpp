// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "slot/reduce_to_all.hpp"

#include <atomic>
#include <cstdint>
#include <span>

namespace weir::slot {

/// The sum of one slot, from its last contribution until its results leave. The ring's worker
/// offers it, and one thread makes it: a helper, or the worker itself. Only the worker offers, and
/// looks whether it is made. It may offer the next sum in the same object: whoever comes late then
/// makes that one, or none.
class Reduction {
 public:
  struct Task {
    std::span<frame::Frame* const> frames; // in order of children, verified
    std::span<std::uint8_t> result;        // the slot's, of as many bytes as each frame has of data
    Fold fold;                             // its kernel may be nullptr where there is no data
    std::uint32_t session = 0;
  };

  /// Not while one that was offered is not made.
  void offer(const Task& task);

  /// Folds the frames' data and turns them into result packets, unless another thread is at it or
  /// it is made. True when it did.
  bool make();

  bool is_made() const { return phase_.load(std::memory_order_acquire) == Phase::made; }

  const Task& task() const { return task_; }

  /// Of the result, once it is made.
  std::uint32_t crc() const { return crc_; }

 private:
  enum class Phase : std::uint8_t { made, offered, taken };

  std::atomic<Phase> phase_{Phase::made};
  Task task_;             // written by the worker
  std::uint32_t crc_ = 0; // written by who makes the sum
};

/// Where a worker may find others to make its sums.
class ReductionHelpers {
 public:
  virtual ~ReductionHelpers() = default;

  /// False when nobody will look at the sum. Whoever does may come late.
  virtual bool ask(Reduction& sum) = 0;
};

} // namespace weir::slot
