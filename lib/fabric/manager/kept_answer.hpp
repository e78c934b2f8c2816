// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace weir::manager {

/// What was answered less than a second ago, or else a new answer: whoever asks without pause costs
/// no more than one who asks each second. For one thread.
template <typename Answer>
class KeptAnswer {
 public:
  using Clock = std::chrono::steady_clock;
  using Ask = std::function<std::shared_ptr<const Answer>()>;

  explicit KeptAnswer(Ask ask, Clock::time_point (*now)() = Clock::now)
      : ask_(std::move(ask)), now_(now) {}

  /// nullptr: there is none now.
  std::shared_ptr<const Answer> get() {
    if (last_ == nullptr || now_() - asked_at_ >= std::chrono::seconds(1)) {
      last_ = ask_();
      asked_at_ = now_();
    }
    return last_;
  }

 private:
  const Ask ask_;
  Clock::time_point (*const now_)();
  std::shared_ptr<const Answer> last_;
  Clock::time_point asked_at_;
};

} // namespace weir::manager
