// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"
#include "server/nics.hpp"

#include <fmt/format.h>

#include <algorithm>

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

/// What the system would lose with the device.
std::string interfaces_of(const Device& device) {
  return device.interfaces.empty() ? ""
                                   : fmt::format("; this server loses its interface {}",
                                                 fmt::join(device.interfaces, ", "));
}

Finding mlx5_driver_of(const Device& device) {
  const std::string what = fmt::format("port {}: {}", device.port, device.address);
  if (device.driver != kMlx5Driver && device.driver != kMlx4Driver) {
    return {Rank::wrong,
            fmt::format("{} has {}; DPDK reaches this NIC through {}", what,
                        device.driver.empty() ? "no driver" : device.driver, kMlx5Driver),
            fmt::format("driverctl unset-override {}", device.address)};
  }
  if (device.rdma_device.empty()) {
    return {Rank::wrong, what + " has no RDMA device: mlx5_ib is not loaded",
            "modprobe -a mlx5_ib ib_uverbs && apt install ibverbs-providers"};
  }
  return {Rank::fine,
          fmt::format("{} stays with {}, as {}", what, device.driver, device.rdma_device)};
}

Finding driver_of(const Device& device) {
  if (is_mellanox(device)) {
    return mlx5_driver_of(device);
  }
  const std::string what = fmt::format("port {}: {}", device.port, device.address);
  if (device.driver == kVfioDriver) {
    return {Rank::fine, what + " has vfio-pci"};
  }
  if (is_uio(device.driver)) {
    return {Rank::warning,
            fmt::format("{} has {}, which needs root and guards no memory", what, device.driver),
            bind_command(device)};
  }
  if (device.driver.empty()) {
    return {Rank::wrong, what + " has no driver; DPDK needs vfio-pci", bind_command(device)};
  }
  return {
      Rank::wrong,
      fmt::format("{} has {}; DPDK needs vfio-pci{}", what, device.driver, interfaces_of(device)),
      bind_command(device)};
}

/// Of a device whose slot says something.
Finding slot_of(const Device& device) {
  const Slot& slot = device.slot;
  const std::string found =
      fmt::format("port {}: {} lanes at {}; the NIC can have {} at {}", device.port, slot.lanes,
                  slot.speed, slot.most_lanes, slot.most_speed);
  const bool is_full = slot.lanes >= slot.most_lanes && slot.speed == slot.most_speed;
  if (is_full) {
    return {Rank::fine,
            fmt::format("port {}: {} lanes at {}", device.port, slot.lanes, slot.speed)};
  }
  return {Rank::warning, found,
          fmt::format("lspci -vv -s {} | grep -E 'LnkCap:|LnkSta:' # then another slot",
                      device.address)};
}

} // namespace

std::vector<Finding> ask_devices(const Case& given) {
  std::vector<Finding> findings;
  for (const Device& device : given.facts.devices) {
    findings.push_back(existence_of(device));
  }
  const auto& options = given.config.eal_options;
  if (!findings.empty() && std::ranges::find(options, "--no-pci") != options.end()) {
    findings.push_back({Rank::wrong, "EAL looks for no PCI device, by --no-pci",
                        "# take --no-pci out of eal.options"});
  }
  return findings;
}

std::vector<Finding> ask_drivers(const Case& given) {
  return of_those_there(given, driver_of);
}

std::vector<Finding> ask_slots(const Case& given) {
  std::vector<Finding> findings;
  for (const Device& device : given.facts.devices) {
    if (device.is_there && device.slot.most_lanes != 0) {
      findings.push_back(slot_of(device));
    }
  }
  return findings;
}

} // namespace weir::server
