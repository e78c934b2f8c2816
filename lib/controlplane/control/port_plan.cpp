// SPDX-License-Identifier: BSD-3-Clause
#include "control/port_plan.hpp"

#include "control/af_xdp.hpp"
#include "control/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace weir::control {

using config::PortConfig;

namespace {

/// Where the place is free, or behind the last one.
std::uint16_t free_place(const std::vector<PortConfig>& places) {
  return static_cast<std::uint16_t>(std::ranges::find_if_not(places, &PortConfig::is_there) -
                                    places.begin());
}

std::uint64_t frames_of(const std::vector<PortConfig>& places) {
  std::uint64_t frames = 0;
  for (const PortConfig& port : places) {
    frames += port.is_there() ? frames_queued_at(port) : 0;
  }
  return frames;
}

/// Such a port keeps buffers when it closes, so each one that came and went would leave the rings
/// less.
void refuse_kept_buffers(const PortConfig& port, std::string_view what) {
  if (keeps_buffers(port)) {
    throw PortError(fmt::format("port {}: device {} {}; allowed: a restart, for its driver does "
                                "not give back the buffers of a port that closes",
                                port.name, port.device_name(), what));
  }
}

void check_device(const PortConfig& port, const std::vector<PortConfig>& present) {
  const auto same = std::ranges::find_if(present, [&](const PortConfig& other) {
    return other.is_there() && other.device_name() == port.device_name();
  });
  if (same != present.end()) {
    throw PortError(fmt::format("port {}: device: found {}, which port {} has; allowed: another "
                                "device, or a reload without that port first",
                                port.name, port.device_name(), same->name));
  }
}

[[noreturn]] void refuse_mtu(const PortConfig& port, unsigned needed, const std::string& why) {
  throw PortError(fmt::format("port {}: mtu: found {}; allowed: at least {}, {}", port.name,
                              port.mtu, needed, why));
}

} // namespace

PortBudget::PortBudget(const config::Config& at_start)
    : ports_(at_start.ports.size() + at_start.spare.ports),
      frames_(frames_of(at_start.ports) + at_start.spare.ports * frames_queued_at({})),
      mtu_(std::ranges::max(at_start.ports, {}, &PortConfig::mtu).mtu) {}

void PortBudget::check(const PortConfig& port, const std::vector<PortConfig>& present) const {
  if (static_cast<std::size_t>(std::ranges::count_if(present, &PortConfig::is_there)) >= ports_) {
    throw PortError(fmt::format("port {}: found {} ports, those that go included; allowed: {} at "
                                "once, until a restart with a larger spare.ports",
                                port.name, ports_ + 1, ports_));
  }
  if (port.mtu > mtu_) {
    throw PortError(fmt::format("port {}: mtu: found {}; allowed: up to {}, the longest at the "
                                "start, until a restart",
                                port.name, port.mtu, mtu_));
  }
  const std::uint64_t taken = frames_of(present);
  const std::uint64_t needed = frames_queued_at(port);
  if (needed > frames_ - std::min(taken, frames_)) {
    throw PortError(fmt::format(
        "port {}: found queues for {} frames; allowed: {}, those of spare.ports that are left: "
        "fewer rx_queues, rx_descriptors or tx_descriptors, or a restart",
        port.name, needed, frames_ - std::min(taken, frames_)));
  }
}

PortPlan plan_ports(const config::Config& in_force, const std::vector<PortConfig>& wanted,
                    const PortBudget& budget) {
  PortPlan plan;
  if (in_force.spare.ports == 0) {
    plan.places = in_force.ports;
    return plan;
  }
  std::vector<PortConfig> all = in_force.ports; // those that go too
  for (const PortConfig& port : wanted) {
    if (std::ranges::find(all, port.name, &PortConfig::name) != all.end()) {
      continue;
    }
    refuse_kept_buffers(port, "would come by a reload");
    check_device(port, all);
    budget.check(port, all);
    const std::uint16_t place = free_place(all);
    all.resize(std::max<std::size_t>(all.size(), place + 1u));
    all[place] = port;
    plan.opened.push_back(place);
  }
  plan.places = std::move(all);
  for (std::uint16_t place = 0; place < plan.places.size(); ++place) {
    PortConfig& port = plan.places[place];
    if (port.is_there() &&
        std::ranges::find(wanted, port.name, &PortConfig::name) == wanted.end()) {
      refuse_kept_buffers(port, "would go by a reload");
      port = {};
      plan.closed.push_back(place);
    }
  }
  return plan;
}

void check_mtu(const PortConfig& port, const ring::RingSpec& spec) {
  const ring::Ring ring(spec);
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const unsigned needed = config::packet_bytes(ring.source_of(sender), spec.mtu);
    if (!ring.port_of(sender) && needed > port.mtu) {
      refuse_mtu(port, needed,
                 fmt::format("for ring {}'s members may be behind any port", spec.id));
    }
  }
}

void check_mtu(const PortConfig& port, const region::RegionSpec& spec) {
  for (const region::MemberSpec& member : spec.members) {
    const unsigned needed = config::packet_bytes(member.ip, spec.mtu);
    if (!member.port && needed > port.mtu) {
      refuse_mtu(port, needed,
                 fmt::format("for region {0}'s members may be behind any port; or `withdraw "
                             "region {0}`",
                             spec.id));
    }
  }
}

} // namespace weir::control
