// SPDX-License-Identifier: BSD-3-Clause
#include "late_metrics.hpp"

namespace weir::app {
namespace {

LateMetrics::Open opening(control::Switch& weir, const std::string& listen) {
  if (listen.empty()) {
    return nullptr;
  }
  return [&weir, listen] { return std::make_unique<metrics::Endpoint>(weir, listen); };
}

} // namespace

LateMetrics::LateMetrics(control::Switch& weir, const std::string& listen, events::EventLog& log)
    : LateEndpoint("metrics", opening(weir, listen), log) {}

} // namespace weir::app
