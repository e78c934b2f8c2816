// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/stop_order.hpp"

#include <fmt/format.h>

#include <optional>

namespace weir::host {

void StopOrder::give(std::string_view why) {
  const std::lock_guard lock(mutex_);
  if (!is_given_.exchange(true)) {
    why_ = why;
  }
}

std::string StopOrder::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

Error StopOrder::error_of(std::uint16_t rank) const {
  const std::string reason = why();
  return {ErrorCode::aborted, rank,
          fmt::format("rank {} aborted the forming of its group{}{}", rank,
                      reason.empty() ? "" : ": ", reason)};
}

void StopOrder::obey(std::uint16_t rank) const {
  if (is_given()) {
    throw error_of(rank);
  }
}

} // namespace weir::host
