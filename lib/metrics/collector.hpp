// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

#include <prometheus/collectable.h>
#include <vector>

namespace weir::metrics {

/// Asks the switch the catalogue's questions, each once a scrape: those about rings once for each
/// ring. `weir_up` is 0, and nothing else is told, when the switch does not answer.
class Collector : public prometheus::Collectable {
 public:
  /// `weir` outlives it.
  explicit Collector(control::Switch& weir) : weir_(weir) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  control::Switch& weir_;
};

} // namespace weir::metrics
