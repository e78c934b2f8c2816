// SPDX-License-Identifier: BSD-3-Clause
#include "control/device_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::control {
namespace {

/// The value of `name` in `name=value,…`. Empty when the name is not there.
std::string_view argument(std::string_view devargs, std::string_view name) {
  while (!devargs.empty()) {
    const std::string_view entry = devargs.substr(0, devargs.find(','));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
    devargs.remove_prefix(std::min(entry.size() + 1, devargs.size()));
  }
  return {};
}

/// Connects with another socket type than the driver's. If a process listens, the kernel rejects
/// the type (EPROTOTYPE) and the listener does not notice. A normal connection is not possible:
/// DPDK 22.11's memif listener aborts when a client leaves at once.
bool has_listener(const DeviceSocket& listener) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (listener.file.size() >= sizeof(address.sun_path)) {
    return true; // no process could have bound it
  }
  std::memcpy(address.sun_path, listener.file.data(), listener.file.size());
  const int other_type = listener.type == SOCK_STREAM ? SOCK_SEQPACKET : SOCK_STREAM;
  const int probe = socket(AF_UNIX, other_type | SOCK_CLOEXEC, 0);
  const int answer = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const bool refused = answer != 0 && errno == ECONNREFUSED;
  close(probe);
  return !refused;
}

std::string_view memif_server_file(std::string_view devargs) {
  const std::string_view role = argument(devargs, "role");
  const bool listens = role == "server" || role == "master"; // its name before DPDK 20.11
  return listens && argument(devargs, "socket-abstract") == "no" ? argument(devargs, "socket")
                                                                 : std::string_view();
}

std::string_view vhost_server_file(std::string_view devargs) {
  const std::string_view client = argument(devargs, "client");
  return client.empty() || client == "0" ? argument(devargs, "iface") : std::string_view();
}

std::optional<DeviceSocket> socket_of(std::string_view devargs) {
  if (devargs.starts_with("net_memif")) {
    return DeviceSocket{std::string(memif_server_file(devargs)), SOCK_SEQPACKET, true};
  }
  if (devargs.starts_with("net_vhost")) {
    return DeviceSocket{std::string(vhost_server_file(devargs)), SOCK_STREAM, false};
  }
  return std::nullopt;
}

} // namespace

std::optional<DeviceSocket> device_socket(std::string_view devargs) {
  std::optional<DeviceSocket> socket = socket_of(devargs);
  return socket && !socket->file.empty() ? socket : std::nullopt;
}

Occupant occupant_of(const DeviceSocket& socket) {
  struct stat status {};

  if (lstat(socket.file.c_str(), &status) != 0) {
    return Occupant::nobody;
  }
  if (!S_ISSOCK(status.st_mode)) {
    return Occupant::other_file;
  }
  return has_listener(socket) ? Occupant::listener : Occupant::stale_socket;
}

} // namespace weir::control
