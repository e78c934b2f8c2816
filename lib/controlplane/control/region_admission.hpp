// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Which regions may be made, and what of the rooms they and their tenants take. No EAL.

#include "config/config.hpp"
#include "control/principal.hpp"
#include "control/region_seen.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {

/// What regions take of regions.rooms.
struct RegionUse {
  std::uint64_t regions = 0;
  std::uint64_t members = 0;
  std::uint64_t frames = 0;  // that they can hold
  std::uint64_t entries = 0; // of those that have views; no tenant has a share
};

/// A region that takes room, from when it is made to its end.
struct RegionHeld {
  const region::RegionSpec& spec;
  std::string_view tenant; // empty: nobody's
};

/// What a tenant may have of the rooms, and what it has.
struct RegionShare {
  std::string tenant;
  RegionUse most;
  RegionUse now;
};

/// Finds what is wrong with a wanted region before an lcore is stopped for it.
class RegionAdmission {
 public:
  /// `at_start` outlives it.
  explicit RegionAdmission(const config::Config& at_start) : at_start_(at_start) {}

  /// Whether the principal may have such a region, by these ports. Throws NotAllowed,
  /// RegionRefused.
  void check(const WantedRegion& wanted, const Principal& principal,
             const std::vector<config::PortConfig>& ports) const;

  /// Whether its members' packets fit the ports by which they may come. Throws RegionRefused.
  static void check_ports(const region::RegionSpec& spec,
                          const std::vector<config::PortConfig>& ports);

  /// Whether there is room for it beside those that are held: its tenant's, and all rooms'. A
  /// tenant's error names no region of another one. Throws NoRoomForRegion.
  void check_room(const WantedRegion& wanted, const std::vector<RegionHeld>& held) const;

  /// In the order of the configuration.
  std::vector<RegionShare> shares(const std::vector<RegionHeld>& held) const;

  /// What a tenant may have.
  RegionUse most_of(std::string_view tenant) const;

 private:
  const config::TenantConfig* find(std::string_view tenant) const;
  void check_tenant(const WantedRegion& wanted, const Principal& principal) const;
  void check_share(const WantedRegion& wanted, const std::vector<RegionHeld>& held) const;

  const config::Config& at_start_;
};

/// Of each tenant whose share of a room is too small for a region of two members and the window
/// that there is unless given: what was found, and what would be enough.
std::vector<std::string> small_region_shares(const config::Config& config);

} // namespace weir::control
