// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "late_endpoint.hpp"
#include "metrics/endpoint.hpp"

#include <string>

namespace weir::app {

/// The metrics' endpoint.
class LateMetrics : public LateEndpoint<metrics::Endpoint, metrics::EndpointError> {
 public:
  /// Empty `listen`: no metrics are wanted.
  LateMetrics(control::Switch& weir, const std::string& listen, events::EventLog& log);
};

} // namespace weir::app
