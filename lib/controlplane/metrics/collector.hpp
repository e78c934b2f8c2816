// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace weir::metrics {

/// Asks the switch the catalogue's questions, each once: those about rings once for each ring. Who
/// scrapes again within a second gets the same answers, so that nobody stops the lcores at will.
/// `weir_up` is 0, and nothing else is told, when the switch does not answer. For one thread.
class Collector {
 public:
  /// `weir` outlives it.
  explicit Collector(control::Switch& weir) : weir_(weir) {}

  /// In the text format of Prometheus.
  std::shared_ptr<const std::string> text();

 private:
  using Clock = std::chrono::steady_clock;

  control::Switch& weir_;
  std::shared_ptr<const std::string> last_;
  std::optional<Clock::time_point> asked_at_;
};

} // namespace weir::metrics
