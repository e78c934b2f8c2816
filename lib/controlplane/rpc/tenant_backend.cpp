// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/tenant_backend.hpp"

#include <fmt/format.h>

namespace weir::rpc {

ring::RingSpec TenantBackend::own(const ring::RingSpec& ring) const {
  if (!ring.tenant.empty() && ring.tenant != caller_.tenant) {
    throw control::NotAllowed(
        fmt::format("ring.tenant: found {}; allowed: {}, or none", ring.tenant, caller_.tenant));
  }
  ring::RingSpec own = ring;
  own.tenant = caller_.tenant;
  return own;
}

void TenantBackend::add_ring(const ring::RingSpec& ring, const Principal&) {
  all_.add_ring(own(ring), caller_);
}

ring::RingBirth TenantBackend::hold_ring(ring::RingSpec& ring, const Principal&) {
  ring = own(ring);
  return all_.hold_ring(ring, caller_);
}

} // namespace weir::rpc
