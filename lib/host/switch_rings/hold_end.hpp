// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::host {

/// Why what a switch or a manager holds has ended. Any thread.
class HoldEnd {
 public:
  using Told = std::function<void(std::string_view why)>;

  /// The first counts.
  void note(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (why_) {
      return;
    }
    why_ = why;
    if (told_) {
      told_(*why_);
    }
  }

  /// `told` is called once, when it has ended; now if it has.
  void when_noted(Told told) {
    const std::lock_guard lock(mutex_);
    told_ = std::move(told);
    if (why_) {
      told_(*why_);
    }
  }

 private:
  std::mutex mutex_; // guards the next two
  std::optional<std::string> why_;
  Told told_;
};

} // namespace weir::host
