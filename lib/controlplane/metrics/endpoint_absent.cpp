// SPDX-License-Identifier: BSD-3-Clause
#include "metrics/endpoint.hpp"

namespace weir::metrics {

struct Endpoint::Parts {};

bool has_endpoint() {
  return false;
}

Endpoint::Endpoint(control::Switch&, const std::string&) {
  throw EndpointError("metrics.listen: this build has no metrics");
}

Endpoint::~Endpoint() = default;

} // namespace weir::metrics
