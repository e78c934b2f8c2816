// SPDX-License-Identifier: BSD-3-Clause
#include "server/nics.hpp"

#include <fmt/format.h>

namespace weir::server {
namespace {

constexpr unsigned kMellanox = 0x15b3;

} // namespace

bool is_mellanox(const Device& device) {
  return device.vendor == kMellanox;
}

bool is_uio(std::string_view kernel_driver) {
  return kernel_driver == "igb_uio" || kernel_driver == "uio_pci_generic";
}

std::string bind_command(const Device& device) {
  return fmt::format("modprobe vfio-pci && driverctl set-override {} {}", device.address,
                     kVfioDriver);
}

} // namespace weir::server
