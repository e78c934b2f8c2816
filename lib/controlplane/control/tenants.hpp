// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/placement.hpp"
#include "control/ring_budget.hpp"
#include "ring/ring_set.hpp"
#include "stage/queue.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {

/// What a tenant has now.
struct TenantUse {
  config::TenantConfig tenant;      // what it may have
  std::vector<std::uint16_t> rings; // indices in the set
  std::uint64_t bytes = 0;          // that these can take: frames, slots, results
  std::size_t neighbours = 0;       // ring::RingSet::neighbours_of()
};

/// What to say of an address that the tenant may not have.
std::string no_host_of(const config::TenantConfig& tenant, const wire::IpAddress& ip);

/// What tenants may have of the switch (docs/operating.md).
class Tenants {
 public:
  /// `mbuf_bytes`: what a frame takes. Throws config::ConfigError if the rings of a tenant take
  /// more than it may have, or if tenants share neighbours.
  Tenants(const std::vector<config::TenantConfig>& tenants, std::size_t mbuf_bytes,
          const ring::RingSet& at_start);

  /// Throws NoRoomForRing when the ring's tenant would have too much: what the ring needs, what the
  /// tenant may have, which of its rings hold it. Throws RingRefused when two neighbours of the
  /// ring are neighbours in a ring of another tenant: both would share one line of the worker's,
  /// and one could take the other's traffic. Throws RingRefused when a member is no host of its
  /// tenant's.
  void check(const ring::Ring& ring, const ring::RingSet& present) const;

  /// In the order of the configuration.
  std::vector<TenantUse> uses(const ring::RingSet& present) const;

  /// By lcore of the placement: each worker's part of the tenants' packets per second. A tenant's
  /// rate is split by the ring groups of its rings, and its regions count as one, so all workers
  /// together let no more pass; a worker's part is lost for the others while its rings are silent.
  /// `region_holders`: names of the tenants that have regions. Empty if there are no tenants.
  std::vector<stage::TenantShares> shares(const ring::RingSet& present, const Placement& placement,
                                          const std::set<std::string>& region_holders) const;

  /// As the workers know it; stage::FairQueue::kNoTenant: there is none of this name.
  std::uint16_t number_of(std::string_view name) const;

 private:
  std::uint64_t bytes_of(const ring::Ring& ring) const;
  TenantUse use_of(const config::TenantConfig& tenant, const ring::RingSet& present) const;

  std::vector<config::TenantConfig> tenants_;
  std::size_t mbuf_bytes_;
};

} // namespace weir::control
