// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/region_messages.hpp"

#include "rpc/messages.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weir::rpc {
namespace {

constexpr std::uint64_t kMsPerSecond = 1000;

/// Unless it is the message's default, which leaves the region's. A number too large for the field
/// is left as large as it can be, for find_defect() to refuse.
template <typename Field>
void take(std::uint64_t value, Field& field) {
  if (value != 0) {
    field = static_cast<Field>(std::min<std::uint64_t>(value, std::numeric_limits<Field>::max()));
  }
}

/// More than a region may have where the product would be too large.
std::uint64_t ms_of(std::uint64_t seconds) {
  return std::min<std::uint64_t>(seconds, std::uint64_t{1} << 32) * kMsPerSecond;
}

std::uint16_t port_named(std::string_view name, std::string_view where,
                         const config::Config& config) {
  const auto found = std::ranges::find(config.ports, name, &config::PortConfig::name);
  if (found == config.ports.end()) {
    std::vector<std::string_view> names;
    for (const config::PortConfig& port : config.ports) {
      if (port.is_there()) {
        names.push_back(port.name);
      }
    }
    throw WrongMessage(
        fmt::format("{}.port: found {}; allowed: {}", where, name, fmt::join(names, ", ")));
  }
  return static_cast<std::uint16_t>(found - config.ports.begin());
}

region::MemberSpec member_of(const v1::RegionMember& message, const std::string& where,
                             const config::Config& config) {
  region::MemberSpec member;
  const auto ip = wire::parse_ip(message.ip());
  if (!ip) {
    throw WrongMessage(
        fmt::format("{}.ip: found '{}'; allowed: an IPv4 or IPv6 address", where, message.ip()));
  }
  member.ip = *ip;
  if (!message.port().empty()) {
    member.port = port_named(message.port(), where, config);
  }
  member.queue_pair = message.queue_pair();
  member.first_psn = message.first_psn();
  member.base = message.base();
  member.key = message.key();
  take(message.ack_timeout(), member.ack_timeout);
  member.right = message.reads_only() ? region::Right::nothing : region::Right::write;
  return member;
}

v1::RegionMember message_of(const region::MemberSpec& member, const config::Config& config) {
  v1::RegionMember message;
  message.set_ip(wire::to_string(member.ip));
  if (member.port) {
    message.set_port(config.ports.at(*member.port).name);
  }
  message.set_queue_pair(member.queue_pair);
  message.set_first_psn(member.first_psn);
  message.set_base(member.base);
  message.set_key(member.key);
  message.set_ack_timeout(member.ack_timeout);
  message.set_reads_only(member.right == region::Right::nothing);
  return message;
}

} // namespace

control::WantedRegion region_of(const v1::Region& message, const config::Config& config) {
  control::WantedRegion wanted{.spec = {}, .tenant = message.tenant()};
  region::RegionSpec& spec = wanted.spec;
  spec.bytes = message.bytes();
  take(message.mtu(), spec.mtu);
  take(message.window(), spec.window);
  take(ms_of(message.patience()), spec.patience_ms);
  take(ms_of(message.forming()), spec.forming_ms);
  spec.loopback = message.loopback() ? region::Loopback::on : region::Loopback::off;
  for (int number = 0; number < message.members_size(); ++number) {
    spec.members.push_back(
        member_of(message.members(number), fmt::format("members[{}]", number), config));
  }
  if (const std::string defect = region::find_defect(spec); !defect.empty()) {
    throw WrongMessage(defect);
  }
  return wanted;
}

void write(const control::MadeRegion& made, const config::Config& config, v1::HeldRegion& message) {
  message.set_id(made.spec.id);
  message.set_ip(wire::to_string(config.regions->address));
  message.set_mac(wire::to_string(config.regions->mac));
  message.set_base(made.birth.base);
  message.set_key(made.birth.multicast_key);
  for (const region::MemberBirth& member : made.birth.members) {
    v1::RegionEnd& end = *message.add_ends();
    end.set_queue_pair(member.queue_pair);
    end.set_first_psn(member.first_psn);
    end.set_token(member.token.data(), member.token.size());
  }
  v1::Region& region = *message.mutable_region();
  region.set_bytes(made.spec.bytes);
  region.set_mtu(made.spec.mtu);
  region.set_window(made.spec.window);
  region.set_loopback(made.spec.loopback == region::Loopback::on);
  region.set_patience(made.spec.patience_ms / kMsPerSecond);
  region.set_forming(made.spec.forming_ms / kMsPerSecond);
  region.set_tenant(made.tenant);
  for (const region::MemberSpec& member : made.spec.members) {
    *region.add_members() = message_of(member, config);
  }
}

} // namespace weir::rpc
