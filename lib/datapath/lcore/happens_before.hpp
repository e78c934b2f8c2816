// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// For ThreadSanitizer; no code in other builds. ThreadSanitizer does not see what orders the two
/// sides of an rte_ring or a mempool: DPDK's libraries are not instrumented, and its headers order
/// plain stores by compiler barriers, which is enough on x86. The two functions below mark each
/// place where an object passes from one lcore to another. docs/testing.md justifies each place.

#if defined(__SANITIZE_THREAD__)
#define WEIR_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZER 1
#endif
#endif

#ifdef WEIR_THREAD_SANITIZER
#include <vector>

extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace weir::lcore {

#ifdef WEIR_THREAD_SANITIZER

inline constexpr bool kUnderThreadSanitizer = true;

/// What this thread did before this call happens before what another thread does after takes_over()
/// of the same address.
inline void hands_over(void* address) {
  __tsan_release(address);
}

inline void takes_over(void* address) {
  __tsan_acquire(address);
}

/// The n-th value pushed into a queue is the n-th popped.
class QueueOrder {
 public:
  explicit QueueOrder(unsigned entries) : places_(entries) {}

  void before_push(unsigned values) {
    for (unsigned i = 0; i < values; ++i) {
      hands_over(&places_[(pushed_ + i) % places_.size()]);
    }
  }

  void after_push(unsigned values) { pushed_ += values; }

  void after_pop(unsigned values) {
    for (; values > 0; --values) {
      takes_over(&places_[popped_++ % places_.size()]);
    }
  }

 private:
  std::vector<char> places_; // one address for each value in the queue
  std::size_t pushed_ = 0;   // producer's
  std::size_t popped_ = 0;   // consumer's
};

#else

inline constexpr bool kUnderThreadSanitizer = false;

inline void hands_over(void* /*address*/) {}

inline void takes_over(void* /*address*/) {}

class QueueOrder {
 public:
  explicit QueueOrder(unsigned /*entries*/) {}

  void before_push(unsigned /*values*/) {}

  void after_push(unsigned /*values*/) {}

  void after_pop(unsigned /*values*/) {}
};

#endif

} // namespace weir::lcore
