// SPDX-License-Identifier: BSD-3-Clause
#include "server/pci_address.hpp"
#include "server/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unistd.h>

namespace weir::server {
namespace {

/// Documentation/ABI/testing/sysfs-bus-pci. A virtual device says nothing, or 0 lanes.
Slot slot_of(const Tree& tree, const std::string& folder) {
  return {.lanes = tree.number<unsigned>(folder + "/current_link_width").value_or(0),
          .most_lanes = tree.number<unsigned>(folder + "/max_link_width").value_or(0),
          .speed = tree.line(folder + "/current_link_speed"),
          .most_speed = tree.line(folder + "/max_link_speed")};
}

/// Documentation/driver-api/vfio.rst.
Access access_to(const Tree& tree, const std::string& group) {
  const std::string file = "/dev/vfio/" + group;
  if (!tree.has(file)) {
    return Access::no_file;
  }
  return access(tree.at(file).c_str(), R_OK | W_OK) == 0 ? Access::granted : Access::denied;
}

IommuGroup group_of(const Tree& tree, const std::string& folder, const std::string& address) {
  IommuGroup group{.number = tree.target(folder + "/iommu_group")};
  if (group.number.empty()) {
    return group;
  }
  for (const std::string& other : tree.names(folder + "/iommu_group/devices")) {
    if (other != address) {
      group.others.push_back({other, tree.target("/sys/bus/pci/devices/" + other + "/driver")});
    }
  }
  group.access = access_to(tree, group.number);
  return group;
}

/// A virtio device has them one folder deeper, below the virtio bus's device.
std::vector<std::string> interfaces_of(const Tree& tree, const std::string& folder) {
  std::vector<std::string> found = tree.names(folder + "/net");
  for (const std::string& name : tree.names(folder)) {
    if (name.starts_with("virtio")) {
      std::ranges::copy(tree.names(fmt::format("{}/{}/net", folder, name)),
                        std::back_inserter(found));
    }
  }
  return found;
}

Device read_device(const Tree& tree, std::string port, const std::string& address) {
  const std::string folder = "/sys/bus/pci/devices/" + address;
  Device device{.port = std::move(port), .address = address, .is_there = tree.has(folder)};
  if (!device.is_there) {
    return device;
  }
  device.vendor = tree.hexadecimal(folder + "/vendor");
  device.model = tree.hexadecimal(folder + "/device");
  device.pci_class = tree.hexadecimal(folder + "/class");
  device.driver = tree.target(folder + "/driver");
  device.node = tree.number<int>(folder + "/numa_node").value_or(control::kNoNode);
  device.slot = slot_of(tree, folder);
  device.group = group_of(tree, folder, address);
  device.interfaces = interfaces_of(tree, folder);
  if (const auto names = tree.names(folder + "/infiniband"); !names.empty()) {
    device.rdma_device = names.front();
    device.firmware = tree.line(folder + "/infiniband/" + names.front() + "/fw_ver");
  }
  return device;
}

} // namespace

Iommu read_iommu(const Tree& tree) {
  return {.is_on = !tree.names("/sys/class/iommu").empty(),
          .is_dispensable =
              tree.line("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode") == "Y",
          .is_intel = tree.text("/proc/cpuinfo").find("GenuineIntel") != std::string::npos};
}

/// Where DPDK's ice driver looks, in its order; EAL unpacks .xz.
std::string find_ice_package(const Tree& tree) {
  for (const std::string_view folder : {"/lib/firmware/updates", "/lib/firmware"}) {
    for (const std::string_view end : {"", ".xz"}) {
      std::string file = fmt::format("{}/intel/ice/ddp/ice.pkg{}", folder, end);
      if (tree.has(file)) {
        return file;
      }
    }
  }
  return {};
}

std::vector<Device> read_devices(const Tree& tree, const config::Config& config) {
  std::vector<Device> devices;
  for (const config::PortConfig& port : config.ports) {
    if (const auto address = pci_address(port)) {
      devices.push_back(read_device(tree, port.name, *address));
    }
  }
  return devices;
}

} // namespace weir::server
