// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

namespace weir::conn {

/// Of what all workers share and seldom change. Spins: nobody holds it for longer than a few
/// look-ups.
class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }

  ~SpinLock() { flag_.clear(std::memory_order_release); }

  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

} // namespace weir::conn
