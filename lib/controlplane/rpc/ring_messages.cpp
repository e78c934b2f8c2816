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

std::string yaml_of(const v1::Member& member) {
  const std::string port =
      member.port().empty() ? "" : fmt::format(", port: {}", text::json_string(member.port()));
  return fmt::format("{{ip: {}{}}}", text::json_string(member.ip()), port);
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
  std::vector<std::string> members;
  std::ranges::transform(ring.members(), std::back_inserter(members),
                         [](const v1::Member& member) { return yaml_of(member); });
  const std::string tenant =
      ring.tenant().empty() ? "" : fmt::format("tenant: {}, ", text::json_string(ring.tenant()));
  return fmt::format("{{id: {}, window: {}, max_message_bytes: {}, {}{}{}{}{}members: [{}]}}",
                     ring.id(), ring.window(), ring.max_message_bytes(),
                     yaml_key("mtu", ring.mtu()), yaml_key("patience", ring.patience()),
                     yaml_of(ring.keep_alive()), yaml_key("lease", ring.lease()), tenant,
                     fmt::join(members, ", "));
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
