// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/verbs_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace weir::host {

ibv_mtu mtu_of(std::uint32_t bytes) {
  switch (bytes) {
  case 256:
    return IBV_MTU_256;
  case 512:
    return IBV_MTU_512;
  case 1024:
    return IBV_MTU_1024;
  case 2048:
    return IBV_MTU_2048;
  default:
    return IBV_MTU_4096;
  }
}

VerbsPort find_port(const VerbsNic& nic, std::uint8_t gid_index, std::uint32_t path_mtu) {
  ibv_port_attr port{};
  if (ibv_query_port(&nic.context(), kVerbsPort, &port) != 0) {
    nic.fail("port 1 cannot be queried", errno);
  }
  if (port.state != IBV_PORT_ACTIVE) {
    nic.fail(fmt::format("port 1 is {}, not active", ibv_port_state_str(port.state)), ENETDOWN);
  }
  if (port.active_mtu < mtu_of(path_mtu)) {
    nic.fail(fmt::format("port 1 carries a path MTU of {}; {} is asked for", 128 << port.active_mtu,
                         path_mtu),
             EMSGSIZE);
  }
  ibv_gid gid{};
  if (ibv_query_gid(&nic.context(), kVerbsPort, gid_index, &gid) != 0) {
    nic.fail(fmt::format("no GID {}", gid_index), errno);
  }
  const wire::IpAddress address = wire::IpAddress::from_v6(gid.raw);
  if (address == wire::IpAddress{}) {
    nic.fail(fmt::format("GID {} is empty (show_gids lists them)", gid_index), EADDRNOTAVAIL);
  }
  VerbsPort found{.gid_index = gid_index, .gid = address, .path_mtu = path_mtu};
  if (port.max_msg_sz != 0) {
    found.longest_message = std::min(found.longest_message, port.max_msg_sz);
  }
  return found;
}

} // namespace weir::host
