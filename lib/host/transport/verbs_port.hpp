// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/verbs_nic.hpp"
#include "wire/address.hpp"

#include <infiniband/verbs.h>

#include <cstdint>

namespace weir::host {

inline constexpr std::uint8_t kVerbsPort = 1;

/// Port 1 of a device, as queue pairs use it.
struct VerbsPort {
  std::uint8_t gid_index = 0; // in its GID table
  wire::IpAddress gid;
  std::uint32_t path_mtu = 1024;             // bytes
  std::uint32_t longest_message = 1U << 31U; // bytes (IBTA §9.7.7), or what the device says
};

ibv_mtu mtu_of(std::uint32_t bytes);

/// Throws Error when the port is not active or carries no such path MTU, or has no such GID.
VerbsPort find_port(const VerbsNic& nic, std::uint8_t gid_index, std::uint32_t path_mtu);

} // namespace weir::host
