// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cassert>
#include <cstdint>
#include <mutex>

namespace weir::lcore {

/// Control's locks. A thread that holds one takes only those below it.
enum class LockRank : std::uint8_t {
  reload,  // one reload at a time
  writer,  // rings and ports do not come, change or go
  capture, // one capture at a time
  trace,   // one reader of traces at a time
  lcores,  // one thread at a time stops the lcores
};

/// The ranks that the calling thread holds, a bit each.
inline thread_local unsigned held_ranks = 0;

/// A mutex that knows its place in the order. So a wrong order fails an assertion wherever it is
/// written, and not only where two threads happen to meet.
template <LockRank kRank>
class RankedMutex {
 public:
  void lock() {
    assert(held_ranks < kBit && "a lock below this one is held, or this one");
    mutex_.lock();
    held_ranks |= kBit;
  }

  void unlock() {
    held_ranks &= ~kBit;
    mutex_.unlock();
  }

 private:
  static constexpr unsigned kBit = 1U << static_cast<unsigned>(kRank);

  std::mutex mutex_;
};

} // namespace weir::lcore
