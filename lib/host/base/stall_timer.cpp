// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/stall_timer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::host {
namespace {

std::int64_t in_milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::floor<std::chrono::milliseconds>(time).count();
}

} // namespace

void StallTimer::renew() {
  looks_ = 0;
  waited_ = longest_ = {};
}

void StallTimer::restart(Deadline now) {
  renew();
  last_look_ = now;
}

void StallTimer::look(Deadline now) {
  const std::chrono::nanoseconds pause = now - last_look_;
  last_look_ = now;
  ++looks_;
  waited_ += std::min<std::chrono::nanoseconds>(pause, kLongestPause);
  longest_ = std::max(longest_, pause);
  if (pause >= kWorthTelling) {
    told_ = pause;
    told_end_ = now;
  }
}

bool StallTimer::is_over(std::chrono::milliseconds more) const {
  return std::chrono::floor<std::chrono::milliseconds>(waited_) - more >= timeout_;
}

std::string StallTimer::describe() const {
  return fmt::format("looked {} times, {} ms apart at most", looks_, in_milliseconds(longest_));
}

std::string StallTimer::own_pause() const {
  if (told_.count() == 0 || last_look_ >= deadline_after(told_end_, timeout_)) {
    return {};
  }
  return fmt::format("did nothing for {} ms until {} ms ago: it was stopped, or got no CPU",
                     in_milliseconds(told_), in_milliseconds(last_look_ - told_end_));
}

} // namespace weir::host
