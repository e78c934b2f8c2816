// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/ring_messages.hpp"

#include "control/leases.hpp"
#include "rpc/messages.hpp"
#include "text/json.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace weir::rpc {
namespace {

/// A key with its value, unless this is the message's default.
std::string yaml_key(std::string_view key, std::uint64_t value) {
  return value == 0 ? "" : fmt::format("{}: {}, ", key, value);
}

/// The same for a port, behind another key.
std::string yaml_port(const std::string& port) {
  return port.empty() ? "" : fmt::format(", port: {}", text::json_string(port));
}

std::string yaml_of(const v1::Member& member) {
  return fmt::format("{{ip: {}{}}}", text::json_string(member.ip()), yaml_port(member.port()));
}

/// A child that is neither a rank nor a switch is left so, for the reader to refuse.
std::string yaml_of(const v1::Child& child) {
  const std::string port = yaml_port(child.port());
  switch (child.child_case()) {
  case v1::Child::kRank:
    return fmt::format("{{rank: {}{}}}", child.rank(), port);
  case v1::Child::kSwitchBelow:
    return fmt::format("{{switch: {}, ranks: [{}, {}]{}}}",
                       text::json_string(child.switch_below().name()),
                       child.switch_below().first_rank(), child.switch_below().last_rank(), port);
  case v1::Child::CHILD_NOT_SET:
    break;
  }
  return "{}";
}

std::string yaml_of(const v1::Parent& parent) {
  return fmt::format("parent: {{switch: {}{}}}, ", text::json_string(parent.name()),
                     yaml_port(parent.port()));
}

/// A list of messages as a key's value.
template <typename Messages>
std::string yaml_list(const Messages& messages) {
  std::vector<std::string> items;
  std::ranges::transform(messages, std::back_inserter(items),
                         [](const auto& message) { return yaml_of(message); });
  return fmt::format("[{}]", fmt::join(items, ", "));
}

/// The word in the file. A number that stands for none is left as it is, for the reader to refuse.
std::string yaml_of(v1::Ring::KeepAlive keep_alive) {
  switch (keep_alive) {
  case v1::Ring::KEEP_ALIVE_UNSPECIFIED:
    return "";
  case v1::Ring::KEEP_ALIVE_ACK:
    return "keep_alive: ack, ";
  case v1::Ring::KEEP_ALIVE_RNR:
    return "keep_alive: rnr, ";
  case v1::Ring::KEEP_ALIVE_OFF:
    return "keep_alive: 'off', "; // a word, not false
  default:
    return fmt::format("keep_alive: {}, ", static_cast<int>(keep_alive));
  }
}

std::string yaml_of(const v1::Ring& ring) {
  const std::string tenant =
      ring.tenant().empty() ? "" : fmt::format("tenant: {}, ", text::json_string(ring.tenant()));
  const std::string children =
      ring.children().empty() ? "" : fmt::format("children: {}, ", yaml_list(ring.children()));
  return fmt::format("{{id: {}, window: {}, max_message_bytes: {}, {}{}{}{}{}{}{}members: {}}}",
                     ring.id(), ring.window(), ring.max_message_bytes(),
                     yaml_key("mtu", ring.mtu()), yaml_key("patience", ring.patience()),
                     yaml_of(ring.keep_alive()), yaml_key("lease", ring.lease()), tenant,
                     ring.has_parent() ? yaml_of(ring.parent()) : "", children,
                     yaml_list(ring.members()));
}

v1::Ring::KeepAlive keep_alive_of(ring::KeepAlive keep_alive) {
  switch (keep_alive) {
  case ring::KeepAlive::ack:
    return v1::Ring::KEEP_ALIVE_ACK;
  case ring::KeepAlive::rnr:
    return v1::Ring::KEEP_ALIVE_RNR;
  case ring::KeepAlive::off:
    return v1::Ring::KEEP_ALIVE_OFF;
  }
  return v1::Ring::KEEP_ALIVE_UNSPECIFIED;
}

void write_tree(const ring::RingSpec& spec, const config::Config& config, v1::Ring& message) {
  for (const ring::Child& child : spec.children) {
    v1::Child& row = *message.add_children();
    if (child.kind == ring::ChildKind::rank) {
      row.set_rank(child.ranks.first);
    } else {
      v1::SwitchBelow& below = *row.mutable_switch_below();
      below.set_name(child.name);
      below.set_first_rank(child.ranks.first);
      below.set_last_rank(child.ranks.last());
    }
    if (child.port) {
      row.set_port(config.ports.at(*child.port).name);
    }
  }
  if (spec.parent) {
    message.mutable_parent()->set_name(spec.parent->name);
    message.mutable_parent()->set_port(config.ports.at(spec.parent->port).name);
  }
}

} // namespace

void write(const ring::RingSpec& spec, const config::Config& config, v1::Ring& message) {
  message.set_id(spec.id);
  message.set_window(spec.window);
  message.set_max_message_bytes(spec.max_message_bytes);
  message.set_mtu(spec.mtu);
  message.set_patience(spec.patience_ms / 1000);
  message.set_keep_alive(keep_alive_of(spec.keep_alive));
  message.set_lease(spec.lease_ms / 1000);
  message.set_tenant(spec.tenant);
  for (const ring::Member& member : spec.members) {
    v1::Member& row = *message.add_members();
    row.set_ip(wire::to_string(member.ip));
    if (member.port) {
      row.set_port(config.ports.at(*member.port).name);
    }
  }
  write_tree(spec, config, message);
}

void write(const ListedRing& ring, const config::Config& config, v1::ListedRing& message) {
  write(ring.spec, config, *message.mutable_ring());
  message.set_connected(ring.connected);
  message.set_held(ring.held);
  message.set_slots_completed(ring.slots_completed);
  message.set_results(ring.results);
  if (ring.draining_s) {
    message.set_draining(*ring.draining_s);
  }
}

std::chrono::seconds quiet_of(const v1::DrainRingRequest& request) {
  if (request.quiet() == 0) {
    return control::kDefaultQuiet;
  }
  const std::chrono::seconds quiet(request.quiet());
  if (!control::is_allowed_quiet(quiet)) {
    throw WrongMessage(
        fmt::format("quiet: found {}; allowed: {}", quiet.count(), control::kAllowedQuiet));
  }
  return quiet;
}

ring::RingSpec ring_of(const v1::Ring& message, const config::Config& config) {
  ring::RingSpec spec = config::parse_rings(yaml_of(message), "ring", config).front();
  spec.nonce = message.nonce(); // no key of a file: a file serves many runs
  return spec;
}

ring::RingSpec ring_of(const v1::HoldRingRequest& request, const config::Config& config) {
  if (!v1::HoldRingRequest::Id_IsValid(request.id())) {
    throw WrongMessage(fmt::format("id: found {}; allowed: GIVEN or CHOSEN_BY_SWITCH",
                                   static_cast<int>(request.id())));
  }
  if (request.id() == v1::HoldRingRequest::CHOSEN_BY_SWITCH && request.ring().id() != 0) {
    throw WrongMessage(fmt::format("ring.id: found {} where the switch chooses it; allowed: 0",
                                   request.ring().id()));
  }
  return ring_of(request.ring(), config);
}

} // namespace weir::rpc
