// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "slot/fold.hpp"

#include <atomic>
#include <cstdint>
#include <span>

namespace weir::slot {

/// The reduction of one slot, from its last contribution until its results leave. The ring's worker
/// offers it, and one thread makes it: a helper or the worker. Only the worker calls offer() and
/// checks is_made(). It may then offer the next reduction in the same object; a helper that comes
/// late makes that one, or none.
class Reduction {
 public:
  struct Task {
    std::span<frame::Frame* const> frames; // in order of children, verified
    std::span<std::uint8_t> result;        // the slot's, of as many bytes as each frame has of data
    Fold fold;
    std::span<frame::Frame* const> results; // the frames that become results: all, or none yet
    std::uint32_t session = 0;              // of the results
  };

  /// Only when the one offered before has been made.
  void offer(const Task& task);

  /// Folds the frames' data and turns `results` into results. False when another thread is making
  /// it or it has been made.
  bool make();

  bool is_made() const { return phase_.load(std::memory_order_acquire) == Phase::made; }

  const Task& task() const { return task_; }

  /// CRC of the result, once it is made.
  std::uint32_t crc() const { return crc_; }

 private:
  enum class Phase : std::uint8_t { made, offered, taken };

  std::atomic<Phase> phase_{Phase::made};
  Task task_;             // written by the worker
  std::uint32_t crc_ = 0; // written by the thread that makes the reduction
};

/// The helpers to which a worker can offer its reductions.
class ReductionHelpers {
 public:
  virtual ~ReductionHelpers() = default;

  /// False when no helper will take it. A helper may also come too late.
  virtual bool ask(Reduction& reduction) = 0;
};

} // namespace weir::slot
