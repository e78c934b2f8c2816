// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/region_messages.hpp"

#include "rpc/messages.hpp"
#include "weir/ina.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
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

/// Who may do neither is a target of the others, and is read.
region::Right right_of(const v1::RegionMember& message) {
  const unsigned write = message.reads_only() ? 0 : static_cast<unsigned>(region::Right::write);
  const unsigned read = message.writes_only() ? 0 : static_cast<unsigned>(region::Right::read);
  return static_cast<region::Right>(write | read);
}

constexpr std::array kOperationNames{
#define X(operation, name, ...) std::string_view(name),
    WEIR_OPERATIONS(X)
#undef X
};

constexpr std::array kTypeNames{
#define X(type, ...) std::string_view(#type),
    WEIR_DATA_TYPES(X)
#undef X
};

/// `found` is the value of that name, or none.
template <typename Value, std::size_t kNames>
Value named(const std::optional<Value>& found, const std::string& field, std::string_view name,
            const std::array<std::string_view, kNames>& names) {
  if (!found) {
    throw WrongMessage(
        fmt::format("{}: found '{}'; allowed: {}", field, name, fmt::join(names, ", ")));
  }
  return *found;
}

region::RegionView view_of(const v1::RegionView& message, const std::string& where) {
  return {named(operation_named(message.operation()), where + ".operation", message.operation(),
                kOperationNames),
          named(data_type_named(message.type()), where + ".type", message.type(), kTypeNames)};
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
  member.right = right_of(message);
  take(message.reads(), member.reads);
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
  message.set_reads_only(!region::allows(member.right, region::Right::write));
  message.set_writes_only(!region::allows(member.right, region::Right::read));
  message.set_reads(member.reads);
  return message;
}

} // namespace

control::WantedRegion region_of(const v1::Region& message, const config::Config& config) {
  control::WantedRegion wanted{.spec = {}, .tenant = message.tenant()};
  region::RegionSpec& spec = wanted.spec;
  spec.bytes = message.bytes();
  take(message.mtu(), spec.mtu);
  take(message.window(), spec.window);
  take(message.entries(), spec.entries);
  for (int number = 0; number < message.views_size(); ++number) {
    spec.views.push_back(view_of(message.views(number), fmt::format("views[{}]", number)));
  }
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
  message.mutable_view_keys()->Assign(made.birth.view_keys.begin(), made.birth.view_keys.end());
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
  region.set_entries(made.spec.entries);
  for (const region::RegionView& view : made.spec.views) {
    v1::RegionView& message_view = *region.add_views();
    message_view.set_operation(std::string(name_of(view.operation)));
    message_view.set_type(std::string(name_of(view.type)));
  }
  for (const region::MemberSpec& member : made.spec.members) {
    *region.add_members() = message_of(member, config);
  }
}

} // namespace weir::rpc
