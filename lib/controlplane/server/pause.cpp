// SPDX-License-Identifier: BSD-3-Clause
#include "server/pause.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::server {

std::optional<Pause> pause_of_interface(const std::string& interface) {
  ethtool_pauseparam parameters{};
  parameters.cmd = ETHTOOL_GPAUSEPARAM;
  ifreq request{};
  if (interface.size() >= sizeof request.ifr_name) {
    return std::nullopt;
  }
  interface.copy(request.ifr_name, interface.size());
  request.ifr_data = reinterpret_cast<char*>(&parameters);
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool is_told = ioctl(socket, SIOCETHTOOL, &request) == 0;
  close(socket);
  if (!is_told) {
    return std::nullopt;
  }
  return Pause{.receives = parameters.rx_pause != 0, .sends = parameters.tx_pause != 0};
}

} // namespace weir::server
