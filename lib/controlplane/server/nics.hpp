// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What kinds of NICs ask of a server (DPDK 22.11).

#include "server/facts.hpp"

#include <string>
#include <string_view>

namespace weir::server {

inline constexpr std::string_view kVfioDriver = "vfio-pci";
inline constexpr std::string_view kMlx5Driver = "mlx5_core";
inline constexpr std::string_view kMlx4Driver = "mlx4_core";

/// Whether it stays with its kernel driver, through which DPDK's driver works too.
bool is_mellanox(const Device& device);

/// Whether DPDK's ice driver takes it.
bool is_ice(const Device& device);

/// Whether the kernel's driver gives the device to a process without an IOMMU.
bool is_uio(std::string_view kernel_driver);

/// Gives the device to vfio-pci, and again after each boot.
std::string bind_command(const Device& device);

} // namespace weir::server
