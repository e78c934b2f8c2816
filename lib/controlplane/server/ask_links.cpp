// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"
#include "server/nics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::server {
namespace {

std::string port_and(const Interface& interface) {
  return fmt::format("port {}: {}", interface.port, interface.name);
}

Finding link_of(const Interface& interface) {
  const std::string what = port_and(interface);
  if (!interface.is_there) {
    return {Rank::wrong, what + " is no interface of this machine",
            "ip -brief link # the interfaces that there are"};
  }
  if (!interface.is_up) {
    return {Rank::warning, what + " is down", fmt::format("ip link set {} up", interface.name)};
  }
  if (!interface.has_carrier) {
    return {Rank::warning, what + " has no link",
            fmt::format("ethtool {} # the cable, its other end, both ends' speed and FEC",
                        interface.name)};
  }
  return {Rank::fine, interface.speed ? fmt::format("{} is up, {} Mbit/s", what, *interface.speed)
                                      : what + " is up"};
}

std::uint16_t wanted_mtu(const Case& given, const std::string& port) {
  return std::ranges::find(given.config.ports, port, &config::PortConfig::name)->mtu;
}

/// The switch asks the driver for what the port is to have.
Finding mtu_of(const Case& given, const Interface& interface) {
  const std::uint16_t wanted = wanted_mtu(given, interface.port);
  const std::string found =
      fmt::format("{} has {}; the port is to have {}", port_and(interface), interface.mtu, wanted);
  if (interface.mtu >= wanted) {
    return {Rank::fine, found};
  }
  return {Rank::warning, found, fmt::format("ip link set {} mtu {}", interface.name, wanted)};
}

Finding pause_of(const Interface& interface) {
  const std::string what = port_and(interface);
  if (!interface.pause) {
    return {Rank::unknown, what + ": its driver does not tell"};
  }
  const auto [receives, sends] = *interface.pause;
  if (receives && sends) {
    return {Rank::fine, what + " heeds and sends pause frames"};
  }
  return {Rank::warning,
          fmt::format("{}: heeds pause frames: {}, sends them: {}", what, receives ? "yes" : "no",
                      sends ? "yes" : "no"),
          fmt::format("ethtool -A {0} rx on tx on # unless it has PFC: dcb pfc show dev {0}",
                      interface.name)};
}

/// Of ports whose NIC is no kernel interface's: the driver tells when it has started.
std::vector<Finding> later(const Case& given) {
  std::vector<Finding> findings;
  for (const Device& device : given.facts.devices) {
    if (device.is_there && !is_mellanox(device)) {
      findings.push_back(
          {Rank::unknown, fmt::format("port {}: not known before the start", device.port)});
    }
  }
  return findings;
}

/// The verdict on each that is there.
template <typename Verdict>
std::vector<Finding> of_interfaces(const Case& given, Verdict&& verdict) {
  std::vector<Finding> findings = later(given);
  for (const Interface& interface : given.facts.interfaces) {
    if (interface.is_there) {
      findings.push_back(verdict(interface));
    }
  }
  return findings;
}

} // namespace

std::vector<Finding> ask_links(const Case& given) {
  std::vector<Finding> findings = later(given);
  for (const Interface& interface : given.facts.interfaces) {
    findings.push_back(link_of(interface));
  }
  return findings;
}

std::vector<Finding> ask_mtu(const Case& given) {
  return of_interfaces(given, [&](const Interface& one) { return mtu_of(given, one); });
}

std::vector<Finding> ask_pause(const Case& given) {
  return of_interfaces(given, pause_of);
}

} // namespace weir::server
