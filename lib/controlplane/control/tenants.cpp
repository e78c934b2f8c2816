// SPDX-License-Identifier: BSD-3-Clause
#include "control/tenants.hpp"

#include "control/memory.hpp"
#include "control/short_list.hpp"
#include "stage/ring_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace weir::control {
namespace {

double mib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / kMiB;
}

const ring::RingSpec& spec_of(const ring::RingSet& set, std::uint16_t ring) {
  return set.rings()[ring].spec();
}

/// "tenant red", or that it is nobody's.
std::string owner_of(const ring::RingSpec& ring) {
  return ring.tenant.empty() ? "of no tenant" : "of tenant " + ring.tenant;
}

/// A present ring of another tenant with two neighbours of this one.
std::optional<std::uint16_t> stranger_beside(const ring::Ring& ring, const ring::RingSet& present) {
  std::set<std::uint16_t> ring_groups;
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const std::uint16_t pair = present.pair_of(ring.source_of(sender), ring.destination_of(sender));
    if (pair != 0) {
      ring_groups.insert(present.ring_group_of_pair(pair));
    }
  }
  for (const std::uint16_t other : present.present()) {
    if (ring_groups.contains(present.ring_group_of(other)) &&
        spec_of(present, other).tenant != ring.spec().tenant) {
      return other;
    }
  }
  return std::nullopt;
}

/// Neighbours of the ring that were neighbours in no ring before.
std::size_t new_neighbours(const ring::Ring& ring, const ring::RingSet& present) {
  std::set<std::pair<wire::IpAddress, wire::IpAddress>> unknown;
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const auto ends = std::minmax({ring.source_of(sender), ring.destination_of(sender)});
    if (present.pair_of(ends.first, ends.second) == 0) {
      unknown.insert(ends);
    }
  }
  return unknown.size();
}

/// Who has no limit gets an equal part of what the others' limits leave. One part more is for rings
/// of no tenant.
std::vector<config::TenantConfig> with_shares(std::vector<config::TenantConfig> tenants) {
  std::size_t left = ring::RingSet::kMostMembers;
  std::size_t parts = 1;
  for (const config::TenantConfig& tenant : tenants) {
    left -= std::min<std::size_t>(left, tenant.neighbours.value_or(0));
    parts += tenant.neighbours ? 0 : 1;
  }
  for (config::TenantConfig& tenant : tenants) {
    if (!tenant.neighbours && left < parts) {
      throw config::ConfigError(
          fmt::format("tenants: the limits neighbours: leave {} for tenant {}, which has none, and "
                      "for rings of "
                      "no tenant; allowed: {} in all, less than that for these",
                      left, tenant.name, ring::RingSet::kMostMembers));
    }
    tenant.neighbours = tenant.neighbours.value_or(left / parts);
  }
  return tenants;
}

/// A member must be a host of its tenant's, whoever asks for the ring.
void check_hosts(const ring::RingSpec& ring, const config::TenantConfig& tenant) {
  for (std::size_t rank = 0; rank < ring.members.size(); ++rank) {
    const wire::IpAddress& ip = ring.members[rank].ip;
    if (!tenant.may_have(ip)) {
      throw RingRefused(
          fmt::format("ring {}: members[{}].ip: {}", ring.id, rank, no_host_of(tenant, ip)));
    }
  }
}

std::string beside(const ring::RingSpec& ring, const ring::RingSpec& other) {
  return fmt::format("ring {} {}: two of its neighbours are neighbours in ring {}, which is {}, or "
                     "in rings that share neighbours with it; allowed: neighbours in rings of one "
                     "tenant",
                     ring.id, owner_of(ring), other.id, owner_of(other));
}

} // namespace

std::string no_host_of(const config::TenantConfig& tenant, const wire::IpAddress& ip) {
  return fmt::format(
      "found {}, which is no host of tenant {}; allowed: an address in its hosts:, {}",
      wire::to_string(ip), tenant.name, fmt::join(config::hosts_of(tenant), ", "));
}

Tenants::Tenants(const std::vector<config::TenantConfig>& tenants, std::size_t mbuf_bytes,
                 const ring::RingSet& at_start)
    : tenants_(with_shares(tenants)), mbuf_bytes_(mbuf_bytes) {
  for (const std::uint16_t ring : at_start.present()) {
    if (const auto other = stranger_beside(at_start.rings()[ring], at_start)) {
      throw config::ConfigError("rings: " +
                                beside(spec_of(at_start, ring), spec_of(at_start, *other)));
    }
  }
  for (const TenantUse& use : uses(at_start)) {
    const config::TenantConfig& tenant = use.tenant;
    if (use.rings.size() > tenant.rings.value_or(use.rings.size())) {
      throw config::ConfigError(fmt::format(
          "tenants: tenant {} has {} rings under rings:; allowed: {}, its rings:", tenant.name,
          use.rings.size(), *tenant.rings));
    }
    if (tenant.memory_mib && mib(use.bytes) > *tenant.memory_mib) {
      throw config::ConfigError(fmt::format(
          "tenants: the rings of tenant {} need {:.1f} MiB: {}; allowed: {}, its memory_mib:",
          tenant.name, mib(use.bytes),
          list_of(use.rings,
                  [&](std::uint16_t ring) {
                    return fmt::format("ring {}: {:.1f}", spec_of(at_start, ring).id,
                                       mib(bytes_of(at_start.rings()[ring])));
                  }),
          *tenant.memory_mib));
    }
  }
}

std::uint64_t Tenants::bytes_of(const ring::Ring& ring) const {
  return frames_held_by(ring) * mbuf_bytes_ + stage::dimensions_of(ring).bytes();
}

TenantUse Tenants::use_of(const config::TenantConfig& tenant, const ring::RingSet& present) const {
  TenantUse use{.tenant = tenant, .rings = {}, .neighbours = present.neighbours_of(tenant.name)};
  for (const std::uint16_t ring : present.present()) {
    if (spec_of(present, ring).tenant == tenant.name) {
      use.rings.push_back(ring);
      use.bytes += bytes_of(present.rings()[ring]);
    }
  }
  return use;
}

std::vector<TenantUse> Tenants::uses(const ring::RingSet& present) const {
  std::vector<TenantUse> uses;
  for (const config::TenantConfig& tenant : tenants_) {
    uses.push_back(use_of(tenant, present));
  }
  return uses;
}

void Tenants::check(const ring::Ring& ring, const ring::RingSet& present) const {
  if (const auto other = stranger_beside(ring, present)) {
    throw RingRefused(beside(ring.spec(), spec_of(present, *other)));
  }
  const auto tenant = std::ranges::find(tenants_, ring.spec().tenant, &config::TenantConfig::name);
  if (tenant == tenants_.end() && !ring.spec().tenant.empty()) {
    throw RingRefused(fmt::format("ring {}: found tenant {}, whom the switch will know after a "
                                  "restart; allowed: one that it was started with",
                                  ring.spec().id, ring.spec().tenant));
  }
  if (tenant == tenants_.end()) {
    return;
  }
  check_hosts(ring.spec(), *tenant);
  const TenantUse use = use_of(*tenant, present);
  if (tenant->rings && use.rings.size() >= *tenant->rings) {
    throw NoRoomForRing(fmt::format(
        "ring {}: tenant {} may have {} rings and has {}: {}; allowed: withdraw one of these, or "
        "configure more rings: for the tenant",
        ring.spec().id, tenant->name, *tenant->rings, use.rings.size(),
        list_of(use.rings, [&](std::uint16_t held) {
          return fmt::format("ring {}", spec_of(present, held).id);
        })));
  }
  if (tenant->memory_mib && mib(use.bytes + bytes_of(ring)) > *tenant->memory_mib) {
    throw NoRoomForRing(fmt::format(
        "ring {}: needs {:.1f} MiB; tenant {} may have {} and has {:.1f}, held by {}; allowed: "
        "withdraw one of these, a smaller window, shorter messages, or configure more memory_mib: "
        "for the tenant",
        ring.spec().id, mib(bytes_of(ring)), tenant->name, *tenant->memory_mib, mib(use.bytes),
        list_of(use.rings, [&](std::uint16_t held) {
          return fmt::format("ring {}: {:.1f}", spec_of(present, held).id,
                             mib(bytes_of(present.rings()[held])));
        })));
  }
  const std::size_t unknown = new_neighbours(ring, present);
  if (tenant->neighbours && use.neighbours + unknown > *tenant->neighbours) {
    throw NoRoomForRing(fmt::format(
        "ring {}: has {} new neighbours; tenant {} may leave {} in the switch's memory and has "
        "left {}, those of withdrawn rings included; allowed: hosts in the order of an earlier "
        "ring, or configure more neighbours: for the tenant, or have them forgotten "
        "(docs/operating.md)",
        ring.spec().id, unknown, tenant->name, *tenant->neighbours, use.neighbours));
  }
}

std::uint16_t Tenants::number_of(std::string_view name) const {
  const auto tenant = std::ranges::find(tenants_, name, &config::TenantConfig::name);
  return tenant == tenants_.end() ? stage::FairQueue::kNoTenant
                                  : static_cast<std::uint16_t>(tenant - tenants_.begin());
}

std::vector<stage::TenantShares>
Tenants::shares(const ring::RingSet& present, const Placement& placement,
                const std::set<std::string>& region_holders) const {
  std::vector<stage::TenantShares> shares;
  if (tenants_.empty()) {
    return shares;
  }
  stage::TenantShares none;
  none.rates.resize(tenants_.size());
  none.tenants.resize(present.ring_groups(), stage::FairQueue::kNoTenant);
  shares.resize(placement.lcores.size(), none);
  for (std::uint16_t tenant = 0; tenant < tenants_.size(); ++tenant) {
    std::set<std::pair<std::uint16_t, std::size_t>> ring_groups; // with each lcore of theirs
    for (const std::uint16_t ring : use_of(tenants_[tenant], present).rings) {
      ring_groups.emplace(present.ring_group_of(ring), placement.worker_of_ring[ring]);
    }
    const std::uint64_t rate = tenants_[tenant].packets_per_second.value_or(0);
    for (const auto& [ring_group, lcore] : ring_groups) {
      shares[lcore].tenants[ring_group] = tenant;
      shares[lcore].rates[tenant] += rate;
    }
    std::size_t parts = ring_groups.size();
    if (region_holders.contains(tenants_[tenant].name)) {
      ++parts;
      shares[owner_of_regions(placement)].rates[tenant] += rate;
    }
    for (stage::TenantShares& share : shares) {
      std::uint64_t& part = share.rates[tenant]; // so far times its parts
      assert(part == 0 || parts != 0);
      part = part == 0 ? 0 : std::max<std::uint64_t>(part / parts, 1);
    }
  }
  return shares;
}

} // namespace weir::control
