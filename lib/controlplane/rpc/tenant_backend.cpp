// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/tenant_backend.hpp"

#include <fmt/format.h>

namespace weir::rpc {

std::string TenantBackend::own_tenant(std::string_view what, const std::string& named) const {
  if (!named.empty() && named != caller_.tenant) {
    throw control::NotAllowed(
        fmt::format("{}.tenant: found {}; allowed: {}, or none", what, named, caller_.tenant));
  }
  return caller_.tenant;
}

ring::RingSpec TenantBackend::own(const ring::RingSpec& ring) const {
  ring::RingSpec own = ring;
  own.tenant = own_tenant("ring", ring.tenant);
  return own;
}

control::MadeRegion TenantBackend::hold_region(const control::WantedRegion& wanted,
                                               const Principal&) {
  control::WantedRegion own = wanted;
  own.tenant = own_tenant("region", wanted.tenant);
  return all_.hold_region(own, caller_);
}

void TenantBackend::add_ring(const ring::RingSpec& ring, const Principal&) {
  all_.add_ring(own(ring), caller_);
}

ring::RingBirth TenantBackend::hold_ring(ring::RingSpec& ring, const Principal&) {
  ring = own(ring);
  return all_.hold_ring(ring, caller_);
}

} // namespace weir::rpc
