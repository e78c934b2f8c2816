// SPDX-License-Identifier: BSD-3-Clause
#include "ethdev/drivers.hpp"

#include <algorithm>
#include <array>
#include <sys/socket.h>

namespace weir::ethdev {
namespace {

bool memif_listens(std::string_view devargs) {
  const std::string_view role = argument_of(devargs, "role");
  return role == "server" || role == "master"; // its name before DPDK 20.11
}

bool memif_connects(std::string_view devargs) {
  return !memif_listens(devargs);
}

bool vhost_listens(std::string_view devargs) {
  const std::string_view client = argument_of(devargs, "client");
  return client.empty() || client == "0";
}

/// Of DPDK 22.11. A name that begins with another one stands before it.
constexpr std::array kDrivers{
    Driver{.name = "net_af_packet", .mtu_limit = MtuLimit::too_tight, .is_on_interface = true},
    Driver{.name = "net_af_xdp",
           .buffers = Buffers::kept_by_kernel,
           .is_on_interface = true,
           .needs = "net_af_xdp needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK and CAP_SYS_ADMIN, "
                    "and an interface with native XDP (veth or a NIC, no tap or bridge) that has "
                    "no XDP program yet"},
    Driver{.name = "net_memif",
           .mtu_limit = MtuLimit::too_tight,
           .ends_on = EndsOn::interrupt_thread,
           .socket = {.argument = "socket",
                      .name = SocketName::file_or_abstract,
                      .listens = memif_listens,
                      .connects_once = memif_connects,
                      .type = SOCK_SEQPACKET,
                      .is_shared = true},
           .needs =
               "a net_memif client on an abstract socket starts only when its server is there"},
    Driver{.name = "net_pcap", .is_on_interface = true},
    Driver{.name = "net_tap", .tx_queues = TxQueues::as_many_as_rx},
    Driver{.name = "net_vhost",
           .socket = {.argument = "iface", .listens = vhost_listens, .type = SOCK_STREAM}},
    Driver{.name = "net_virtio_user", .tx_queues = TxQueues::one, .socket = {.argument = "path"}},
    Driver{.name = "net_virtio", .tx_queues = TxQueues::one},
};

constexpr Driver kWithoutQuirk;

} // namespace

std::string_view argument_of(std::string_view devargs, std::string_view name) {
  while (!devargs.empty()) {
    const std::string_view entry = devargs.substr(0, devargs.find(','));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
    devargs.remove_prefix(std::min(entry.size() + 1, devargs.size()));
  }
  return {};
}

bool is_abstract(const DriverSocket& socket, std::string_view devargs) {
  return socket.name == SocketName::file_or_abstract &&
         argument_of(devargs, "socket-abstract") != "no";
}

const Driver& driver_of(std::string_view name) {
  const auto row = std::ranges::find_if(
      kDrivers, [name](const Driver& driver) { return name.starts_with(driver.name); });
  return row == kDrivers.end() ? kWithoutQuirk : *row;
}

} // namespace weir::ethdev
