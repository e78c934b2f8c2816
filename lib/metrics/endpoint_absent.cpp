// SPDX-License-Identifier: BSD-3-Clause
#include "metrics/endpoint.hpp"

namespace weir::metrics {

struct Endpoint::Parts {};

Endpoint::Endpoint(control::Switch&, const std::string&) {
  throw EndpointError("metrics: found in the configuration, but this weir was built without "
                      "prometheus-cpp; allowed: a build with -Dmetrics=enabled");
}

Endpoint::~Endpoint() = default;

} // namespace weir::metrics
