// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/endpoint.hpp"

namespace weir::rpc {

struct Endpoint::Parts {};

bool has_endpoint() {
  return false;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): endpoint.cpp's keeps it
Endpoint::Endpoint(Backend&, const config::ControlConfig&, Tell) {
  throw EndpointError("control.listen: this build has no control service");
}

Endpoint::~Endpoint() = default;

} // namespace weir::rpc
