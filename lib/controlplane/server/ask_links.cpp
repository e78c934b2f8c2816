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

} // namespace

std::vector<Finding> ask_links(const Case& given) {
  std::vector<Finding> findings = later(given);
  for (const Interface& interface : given.facts.interfaces) {
    findings.push_back(link_of(interface));
  }
  return findings;
}

} // namespace weir::server
