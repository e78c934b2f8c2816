// SPDX-License-Identifier: BSD-3-Clause
#include "late_metrics.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace weir::app {
namespace {

constexpr std::chrono::seconds kPause{10};

} // namespace

LateMetrics::LateMetrics(control::Switch& weir, const std::string& listen)
    : weir_(weir), listen_(listen) {
  try_to_listen();
}

void LateMetrics::try_to_listen() {
  const auto now = std::chrono::steady_clock::now();
  if (listen_.empty() || endpoint_ || now < due_) {
    return;
  }
  due_ = now + kPause;
  try {
    endpoint_.emplace(weir_, listen_);
  } catch (const metrics::EndpointError& error) {
    if (!std::exchange(has_complained_, true)) {
      fmt::print(stderr, "weir: {}; the switch forwards without metrics, and tries every {} s\n",
                 error.what(), kPause.count());
    }
  }
}

void LateMetrics::end() {
  listen_.clear();
  endpoint_.reset();
}

} // namespace weir::app
