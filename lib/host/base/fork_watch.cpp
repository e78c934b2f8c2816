// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/fork_watch.hpp"

#include <atomic>
#include <mutex>
#include <pthread.h>
#include <set>
#include <unistd.h>

namespace weir::host {
namespace {

/// Never destroyed: static objects of others may outlive ours.
class ForkWatch {
 public:
  static ForkWatch& instance() {
    static auto* const watch = new ForkWatch;
    return *watch;
  }

  unsigned generation() const { return generation_.load(std::memory_order_relaxed); }

  /// Holds the lock, so that no fork comes between opening the descriptor and noting it.
  int open(const std::function<int()>& call) {
    const std::lock_guard lock(mutex_);
    const int descriptor = call();
    if (descriptor >= 0) {
      descriptors_.insert(descriptor);
    }
    return descriptor;
  }

  void close(int descriptor) {
    const std::lock_guard lock(mutex_);
    descriptors_.erase(descriptor);
    ::close(descriptor);
  }

 private:
  ForkWatch() { pthread_atfork(before_fork, in_parent, in_child); }

  static void before_fork() { instance().mutex_.lock(); }

  static void in_parent() { instance().mutex_.unlock(); }

  static void in_child() {
    ForkWatch& watch = instance();
    for (const int descriptor : watch.descriptors_) {
      ::close(descriptor);
    }
    watch.descriptors_.clear();
    watch.generation_.fetch_add(1, std::memory_order_relaxed);
    watch.mutex_.unlock();
  }

  std::atomic<unsigned> generation_ = 0; // forks between the first process and this one
  std::mutex mutex_;
  std::set<int> descriptors_; // guarded by the mutex
};

} // namespace

Birthplace::Birthplace() : generation_(ForkWatch::instance().generation()) {}

bool Birthplace::is_here() const {
  return generation_ == ForkWatch::instance().generation();
}

int open_unshared(const std::function<int()>& call) {
  return ForkWatch::instance().open(call);
}

void unshare(int descriptor) {
  open_unshared([descriptor] { return descriptor; });
}

void close_unshared(int descriptor) {
  ForkWatch::instance().close(descriptor);
}

} // namespace weir::host
