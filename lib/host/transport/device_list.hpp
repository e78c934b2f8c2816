// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/group_options.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weir::host {

/// A device by which a group could reach the network.
struct DeviceInfo {
  TransportKind transport = TransportKind::software;
  std::string name;      // a network interface; over verbs an RDMA device
  std::string interface; // the network interface, also of an RDMA device; "" if it has none
  std::string ip;        // which a group would use; "": none, or several
  std::string mac;
  std::string pci_path; // below /sys/devices; "": not on a PCI bus
  std::optional<unsigned> numa_node;
  std::uint64_t megabits = 0; // a second; 0: unknown
  std::uint32_t mtu = 0;      // of the interface
  // Over verbs: the first RoCEv2 entry of port 1's GID table with an IPv4 address, or with an IPv6
  // address that others can use.
  std::optional<std::uint8_t> gid_index;
  bool is_up = false; // it has a link
};

/// This host's Ethernet interfaces without the loopback, then its RoCE NICs, each in the order of
/// their names. `sysfs` is where the kernel's sysfs is mounted (Linux: Documentation/ABI, class/net
/// and class/infiniband). Throws std::runtime_error.
std::vector<DeviceInfo> list_devices(const std::filesystem::path& sysfs = "/sys");

} // namespace weir::host
