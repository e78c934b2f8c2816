// SPDX-License-Identifier: BSD-3-Clause
#include "feed_watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::app {

std::chrono::milliseconds FeedWatchdog::period_within(std::chrono::milliseconds most) const {
  return std::min(most, service_.watchdog_period().value_or(most));
}

void FeedWatchdog::see(const control::Look&) {
  if (!service_.watchdog_period()) {
    return;
  }
  if (!std::exchange(has_told_, true)) {
    service_.tell_status("forwards");
  }
  service_.give_sign_of_life();
}

void FeedWatchdog::miss(const lcore::LcoreError& error) {
  if (!service_.watchdog_period()) {
    return;
  }
  log_.write({events::EventKind::lcore_hangs,
              fmt::format("{}; systemd ends this process unless it soon does", error.what()),
              {{"lcore", fmt::format("{}", error.lcore())}}});
  service_.tell_status(error.what());
  has_told_ = false;
}

} // namespace weir::app
