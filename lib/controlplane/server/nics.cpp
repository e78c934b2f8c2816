// SPDX-License-Identifier: BSD-3-Clause
#include "server/nics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::server {
namespace {

constexpr unsigned kMellanox = 0x15b3;
constexpr unsigned kIntel = 0x8086;

/// As librte_net_ice lists them.
constexpr std::array kIceModels{
    0x124cu, 0x124du, 0x124eu, 0x124fu, 0x151du, 0x1591u, 0x1592u, 0x1593u,
    0x1599u, 0x159au, 0x159bu, 0x188au, 0x188bu, 0x188cu, 0x188du, 0x188eu,
    0x1888u, 0x1890u, 0x1891u, 0x1892u, 0x1893u, 0x1894u, 0x1897u, 0x1898u,
    0x1899u, 0x189au, 0x0dbdu, 0x579cu, 0x579du, 0x579eu, 0x579fu, 0x0dcdu,
};

} // namespace

bool is_mellanox(const Device& device) {
  return device.vendor == kMellanox;
}

bool is_ice(const Device& device) {
  return device.vendor == kIntel && std::ranges::find(kIceModels, device.model) != kIceModels.end();
}

bool is_uio(std::string_view kernel_driver) {
  return kernel_driver == "igb_uio" || kernel_driver == "uio_pci_generic";
}

std::string bind_command(const Device& device) {
  return fmt::format("modprobe vfio-pci && driverctl set-override {} {}", device.address,
                     kVfioDriver);
}

} // namespace weir::server
