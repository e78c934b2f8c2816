// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"

#include <fmt/format.h>

namespace weir::server {
namespace {

constexpr unsigned kNetworkClass = 0x02; // PCI Code and ID Assignment Specification, base class

Finding existence_of(const Device& device) {
  const std::string what = fmt::format("port {}: {}", device.port, device.address);
  if (!device.is_there) {
    return {Rank::wrong, what + " is not there",
            "lspci -D | grep -i ethernet # the addresses that there are, for ports[].device"};
  }
  if (device.pci_class >> 16 != kNetworkClass) {
    return {Rank::warning,
            fmt::format("{} is no network controller, by its class {:06x}", what, device.pci_class),
            "lspci -D | grep -i ethernet"};
  }
  return {Rank::fine,
          fmt::format("{} is there ({:04x}:{:04x})", what, device.vendor, device.model)};
}

} // namespace

std::vector<Finding> ask_devices(const Case& given) {
  std::vector<Finding> findings;
  for (const Device& device : given.facts.devices) {
    findings.push_back(existence_of(device));
  }
  return findings;
}

} // namespace weir::server
