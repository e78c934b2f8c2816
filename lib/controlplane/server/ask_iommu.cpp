// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"
#include "server/nics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::server {
namespace {

/// What a group's other devices may have, so that a process gets the group (vfio.rst): nothing, a
/// driver of vfio's, or that of a bridge.
constexpr std::array kHarmless{std::string_view{}, kVfioDriver, std::string_view{"pcieport"},
                               std::string_view{"pci-stub"}};

bool is_harmless(const IommuGroup::Member& member) {
  return std::ranges::find(kHarmless, member.driver) != kHarmless.end();
}

std::string turn_on(const Iommu& iommu) {
  if (!iommu.is_intel) {
    return "# turn AMD-Vi on in the BIOS, and add iommu=pt to the kernel's command line";
  }
  return "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&intel_iommu=on iommu=pt /' /etc/default/grub && "
         "update-grub && reboot # and VT-d on in the BIOS";
}

Finding state_of(const Iommu& iommu) {
  if (iommu.is_on) {
    return {Rank::fine, "on"};
  }
  if (iommu.is_dispensable) {
    return {Rank::warning, "off; vfio's unsafe mode without one needs root and guards no memory",
            turn_on(iommu)};
  }
  return {Rank::wrong, "off, and vfio-pci needs it", turn_on(iommu)};
}

Finding access_of(const Device& device) {
  const std::string file = "/dev/vfio/" + device.group.number;
  if (device.group.access == Access::granted) {
    return {Rank::fine, fmt::format("port {}: this user may open {}", device.port, file)};
  }
  if (device.group.access == Access::no_file) {
    return {Rank::wrong, fmt::format("port {}: {} is not there", device.port, file),
            "modprobe vfio-pci"};
  }
  return {Rank::wrong, fmt::format("port {}: this user may not open {}", device.port, file),
          "udevadm trigger --subsystem-match=vfio # 60-weir.rules gives it to the user weir"};
}

/// Of a device that has vfio-pci, under an IOMMU.
Finding group_of(const Device& device) {
  if (device.group.number.empty()) {
    return {Rank::wrong,
            fmt::format("port {}: {} is in no IOMMU group", device.port, device.address),
            bind_command(device)};
  }
  const auto other = std::ranges::find_if_not(device.group.others, is_harmless);
  if (other != device.group.others.end()) {
    return {Rank::wrong,
            fmt::format("port {}: its IOMMU group {} has {} too, with {}; all must have vfio-pci",
                        device.port, device.group.number, other->address, other->driver),
            fmt::format("driverctl set-override {} {}", other->address, kVfioDriver)};
  }
  return access_of(device);
}

} // namespace

std::vector<Finding> ask_iommu(const Case& given) {
  std::vector<Finding> findings;
  for (const Device& device : given.facts.devices) {
    if (device.is_there && !is_mellanox(device)) {
      findings.push_back(state_of(given.facts.iommu));
      break;
    }
  }
  for (const Device& device : given.facts.devices) {
    if (given.facts.iommu.is_on && device.driver == kVfioDriver) {
      findings.push_back(group_of(device));
    }
  }
  return findings;
}

} // namespace weir::server
