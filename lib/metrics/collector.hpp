// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

#include <chrono>
#include <mutex>
#include <optional>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <vector>

namespace weir::metrics {

/// Asks the switch the catalogue's questions, each once: those about rings once for each ring. Who
/// scrapes again within a second gets the same answers, so that nobody stops the lcores at will.
/// `weir_up` is 0, and nothing else is told, when the switch does not answer. For any thread.
class Collector : public prometheus::Collectable {
 public:
  /// `weir` outlives it.
  explicit Collector(control::Switch& weir) : weir_(weir) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  using Clock = std::chrono::steady_clock;

  control::Switch& weir_;
  mutable std::mutex mutex_;
  mutable std::vector<prometheus::MetricFamily> last_;
  mutable std::optional<Clock::time_point> asked_at_;
};

} // namespace weir::metrics
