// SPDX-License-Identifier: BSD-3-Clause
#include "control/region_admission.hpp"

#include "control/short_list.hpp"
#include "control/tenants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::control {
namespace {

/// A room of the rooms.
struct Room {
  std::string_view name; // in regions.rooms
  std::string_view key;  // in tenants[]; empty: tenants have no share of it
  std::uint64_t RegionUse::*amount;
  std::string_view less; // how a region takes less of it
};

constexpr std::array kRooms{
    Room{"regions", "regions", &RegionUse::regions, ""},
    Room{"members", "region_members", &RegionUse::members, "fewer members, "},
    Room{"frames", "region_frames", &RegionUse::frames, "fewer members or a smaller window, "},
    Room{"entries", "", &RegionUse::entries, "fewer entries, "},
};

RegionUse use_of(const region::RegionSpec& spec) {
  return {1, spec.members.size(), region::most_frames(spec), region::entries_of(spec)};
}

RegionUse sum_of(const std::vector<RegionHeld>& held) {
  RegionUse sum;
  for (const RegionHeld& one : held) {
    const RegionUse use = use_of(one.spec);
    for (const Room& room : kRooms) {
      sum.*room.amount += use.*room.amount;
    }
  }
  return sum;
}

std::vector<RegionHeld> held_by(std::string_view tenant, const std::vector<RegionHeld>& held) {
  std::vector<RegionHeld> own;
  std::ranges::copy_if(held, std::back_inserter(own),
                       [&](const RegionHeld& one) { return one.tenant == tenant; });
  return own;
}

RegionUse all_of(const config::RegionRooms& rooms) {
  return {rooms.regions, rooms.members, rooms.frames, rooms.entries};
}

void check_packets_fit(const region::RegionSpec& spec, std::size_t member,
                       const std::vector<config::PortConfig>& ports) {
  const region::MemberSpec& one = spec.members[member];
  if (one.port && !ports.at(*one.port).is_there()) {
    throw RegionRefused(fmt::format("members[{}].port: found one that was closed just now; "
                                    "allowed: a port that there is, or none",
                                    member));
  }
  for (std::uint16_t place = 0; place < ports.size(); ++place) {
    const config::PortConfig& port = ports[place];
    const unsigned bytes = config::packet_bytes(one.ip, spec.mtu);
    if (port.is_there() && one.port.value_or(place) == place && bytes > port.mtu) {
      throw RegionRefused(fmt::format(
          "mtu: found {}, which makes packets of {} bytes for {}, over port {}'s mtu of {}; "
          "allowed: a smaller one",
          spec.mtu, bytes, member_in_words(spec, member), port.name, port.mtu));
    }
  }
}

void check_address(const region::RegionSpec& spec, std::size_t member, const wire::IpAddress& own) {
  const wire::IpAddress& ip = spec.members[member].ip;
  if (ip == own || ip.is_v4() != own.is_v4()) {
    throw RegionRefused(fmt::format("members[{}].ip: found {}; allowed: a host's {} address, as "
                                    "the regions' own, {}",
                                    member, wire::to_string(ip), own.is_v4() ? "IPv4" : "IPv6",
                                    wire::to_string(own)));
  }
}

/// For each member, what it has to acknowledge of all members' windows: no room of the file bounds
/// that.
void check_records(const region::RegionSpec& spec) {
  constexpr std::uint64_t most = 1 << 23; // a quarter of a GiB, or half of one with views
  const std::uint64_t records = spec.members.size() * spec.members.size() * spec.window;
  if (records > most) {
    throw NoRoomForRegion(
        fmt::format("the region needs {0} x {0} members x window {1} = {2} records of copies under "
                    "way; allowed: at most {3}, by fewer members or a smaller window",
                    spec.members.size(), spec.window, records, most));
  }
}

void check_room_of_all(const Room& room, std::uint64_t needed, std::uint64_t taken,
                       std::uint64_t all) {
  if (taken + needed > all) {
    throw NoRoomForRegion(fmt::format(
        "the region needs {0} {1}, {2} are free; allowed: {3}end a region, or configure a larger "
        "regions.rooms.{1}",
        needed, room.name, all - taken, room.less));
  }
}

/// The window is the one that there is unless given.
region::RegionSpec smallest_usual_region() {
  region::RegionSpec spec;
  spec.members.resize(2);
  return spec;
}

std::string small_share(const config::TenantConfig& tenant, const Room& room, std::uint64_t share,
                        std::uint64_t all) {
  const region::RegionSpec usual = smallest_usual_region();
  const std::uint64_t needed = use_of(usual).*room.amount;
  return fmt::format("tenants[{0}].{1}: found a share of {2} {3}, but a region of {4} members with "
                     "the usual window of {5} takes {6}; right would be: {1}: {6} or more{7}",
                     tenant.name, room.key, share, room.name, usual.members.size(), usual.window,
                     needed,
                     all < needed ? fmt::format(", and so regions.rooms.{}", room.name) : "");
}

} // namespace

void RegionAdmission::check(const WantedRegion& wanted, const Principal& principal,
                            const std::vector<config::PortConfig>& ports) const {
  if (!at_start_.regions) {
    throw RegionRefused("this switch has no regions; allowed: a configuration with regions:");
  }
  check_tenant(wanted, principal);
  const region::RegionSpec& spec = wanted.spec;
  if (const std::string defect = region::find_defect(spec); !defect.empty()) {
    throw RegionRefused(defect);
  }
  for (std::size_t member = 0; member < spec.members.size(); ++member) {
    check_address(spec, member, at_start_.regions->address);
  }
  check_ports(spec, ports);
}

void RegionAdmission::check_ports(const region::RegionSpec& spec,
                                  const std::vector<config::PortConfig>& ports) {
  for (std::size_t member = 0; member < spec.members.size(); ++member) {
    check_packets_fit(spec, member, ports);
  }
}

const config::TenantConfig* RegionAdmission::find(std::string_view tenant) const {
  const auto found = std::ranges::find(at_start_.tenants, tenant, &config::TenantConfig::name);
  return found == at_start_.tenants.end() ? nullptr : &*found;
}

/// A member must be a host of its tenant's, whoever asks for the region. Without hosts: the switch
/// does not know whose a host is, so only an operator may say.
void RegionAdmission::check_tenant(const WantedRegion& wanted, const Principal& principal) const {
  if (!principal.is_operator() && wanted.tenant != principal.tenant) {
    throw NotAllowed(
        fmt::format("tenant: found '{}'; allowed: {}", wanted.tenant, principal.tenant));
  }
  if (wanted.tenant.empty()) {
    return;
  }
  const config::TenantConfig* const tenant = find(wanted.tenant);
  if (tenant == nullptr) {
    throw RegionRefused(
        fmt::format("tenant: found {}; allowed: a name under tenants:", wanted.tenant));
  }
  if (!principal.is_operator() && !tenant->regions) {
    throw NotAllowed(fmt::format("tenant: found {}, which may hold no regions; allowed: configure "
                                 "regions: for the tenant, or an operator's call",
                                 tenant->name));
  }
  if (!principal.is_operator() && tenant->hosts.empty()) {
    throw NotAllowed(fmt::format("members: found a region of tenant {}, which has no hosts:; "
                                 "allowed: configure hosts: for the tenant, or an operator's call",
                                 tenant->name));
  }
  for (std::size_t member = 0; member < wanted.spec.members.size(); ++member) {
    const wire::IpAddress& ip = wanted.spec.members[member].ip;
    if (!tenant->may_have(ip)) {
      throw RegionRefused(fmt::format("members[{}].ip: {}", member, no_host_of(*tenant, ip)));
    }
  }
}

void RegionAdmission::check_room(const WantedRegion& wanted,
                                 const std::vector<RegionHeld>& held) const {
  check_share(wanted, held);
  const RegionUse needed = use_of(wanted.spec);
  const RegionUse taken = sum_of(held);
  for (const Room& room : kRooms) {
    check_room_of_all(room, needed.*room.amount, taken.*room.amount,
                      all_of(at_start_.regions->rooms).*room.amount);
  }
  check_records(wanted.spec);
}

void RegionAdmission::check_share(const WantedRegion& wanted,
                                  const std::vector<RegionHeld>& held) const {
  if (wanted.tenant.empty()) {
    return;
  }
  const std::vector<RegionHeld> own = held_by(wanted.tenant, held);
  const RegionUse use = use_of(wanted.spec);
  const RegionUse now = sum_of(own);
  const RegionUse bound = most_of(wanted.tenant);
  for (const Room& room : kRooms) {
    const std::uint64_t needed = use.*room.amount;
    const std::uint64_t taken = now.*room.amount;
    const std::uint64_t most = bound.*room.amount;
    if (!room.key.empty() && taken + needed > most) {
      throw NoRoomForRegion(fmt::format(
          "the region needs {} {}; tenant {} may have {} and has {}, held by {}; allowed: {}end "
          "one of its regions, or configure more {}: for the tenant",
          needed, room.name, wanted.tenant, most, taken,
          list_of(
              own,
              [&](const RegionHeld& one) {
                return fmt::format("region {}: {}", one.spec.id, use_of(one.spec).*room.amount);
              },
              "no region"),
          room.less, room.key));
    }
  }
}

/// Who has a limit of regions only has the same part of the other rooms. Who has none is bounded by
/// the rooms: an operator holds its regions.
RegionUse RegionAdmission::most_of(std::string_view tenant) const {
  const config::TenantConfig& one = *find(tenant);
  const config::RegionRooms& rooms = at_start_.regions->rooms;
  const RegionUse all = all_of(rooms);
  const std::uint64_t regions = one.regions.value_or(rooms.regions);
  const std::uint64_t members = one.region_members.value_or(all.members * regions / all.regions);
  const std::uint64_t frames = one.region_frames.value_or(all.frames * regions / all.regions);
  return {std::min(regions, all.regions), std::min(members, all.members),
          std::min(frames, all.frames), all.entries};
}

std::vector<RegionShare> RegionAdmission::shares(const std::vector<RegionHeld>& held) const {
  std::vector<RegionShare> shares;
  if (!at_start_.regions) {
    return shares;
  }
  for (const config::TenantConfig& tenant : at_start_.tenants) {
    shares.push_back({tenant.name, most_of(tenant.name), sum_of(held_by(tenant.name, held))});
  }
  return shares;
}

std::vector<std::string> small_region_shares(const config::Config& config) {
  std::vector<std::string> small;
  if (!config.regions) {
    return small;
  }
  const RegionAdmission admission(config);
  const RegionUse needed = use_of(smallest_usual_region());
  const RegionUse all = all_of(config.regions->rooms);
  for (const config::TenantConfig& tenant : config.tenants) {
    if (tenant.regions.value_or(0) == 0) {
      continue;
    }
    const RegionUse share = admission.most_of(tenant.name);
    for (const Room& room : kRooms) {
      if (share.*room.amount < needed.*room.amount) {
        small.push_back(small_share(tenant, room, share.*room.amount, all.*room.amount));
      }
    }
  }
  return small;
}

} // namespace weir::control
