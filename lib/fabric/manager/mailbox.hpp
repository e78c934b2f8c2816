// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace weir::manager {

/// Work for the one thread that has the loop. Any thread may add some.
class Mailbox {
 public:
  using Work = std::function<void()>;

  static constexpr std::size_t kMostCalls = 4096;

  void add(Work work) {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    changed_.notify_one();
  }

  /// Of a caller, who can come again. False: so many wait, and it was not taken.
  bool add_call(Work work) {
    const std::lock_guard lock(mutex_);
    if (works_.size() >= kMostCalls) {
      return false;
    }
    works_.push_back(std::move(work));
    changed_.notify_one();
    return true;
  }

  /// No further work is taken out.
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

  /// All that there is, after a wait for some, or nothing after so long. Never throws away what
  /// came before close().
  std::deque<Work> take(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [this] { return !works_.empty() || is_closed_; });
    return std::exchange(works_, {});
  }

  bool is_closed() {
    const std::lock_guard lock(mutex_);
    return is_closed_;
  }

 private:
  std::mutex mutex_; // guards all below
  std::condition_variable changed_;
  std::deque<Work> works_;
  bool is_closed_ = false;
};

} // namespace weir::manager
