// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/properties.hpp"

#include <cstring>

namespace weir::nccl {
namespace {

constexpr int kMostComms = 65536; // as many channels as NCCL wants
constexpr int kNoTopology = -1;

/// The MAC address as a number; two devices of one chip share links, and have two.
std::uint64_t number_of(const char* mac) {
  std::uint64_t number = 0;
  for (const char* each = mac; *each != '\0'; ++each) {
    if (*each != ':') {
      const int digit = *each <= '9' ? *each - '0' : (*each | 0x20) - 'a' + 10;
      number = number << 4 | static_cast<unsigned>(digit);
    }
  }
  return number;
}

} // namespace

PropertiesV12 properties_of(const weir_device& device, int number) {
  PropertiesV12 properties{};
  auto& base = properties.base;
  base.name = const_cast<char*>(device.name); // NCCL only reads them
  base.pci_path = device.pci_path[0] != '\0' ? const_cast<char*>(device.pci_path) : nullptr;
  base.guid = number_of(device.mac);
  base.pointer_support = kHostMemory;
  base.speed = static_cast<int>(device.speed_mbps);
  base.port = 1;
  base.most_comms = kMostComms;
  base.most_receives = 1;
  base.merged.count = 1;
  base.merged.devices[0] = number;
  base.most_point_to_point_bytes = kMostBytes;
  base.most_collective_bytes = kMostBytes;
  properties.most_requests_in_one = 1;
  properties.rail = kNoTopology;
  properties.plane = kNoTopology;
  return properties;
}

} // namespace weir::nccl
