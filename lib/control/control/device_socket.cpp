// SPDX-License-Identifier: BSD-3-Clause
#include "control/device_socket.hpp"

#include "config/devargs.hpp"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace weir::control {
namespace {

using config::argument_of;

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
  const std::string_view role = argument_of(devargs, "role");
  const bool listens = role == "server" || role == "master"; // its name before DPDK 20.11
  return listens && argument_of(devargs, "socket-abstract") == "no" ? argument_of(devargs, "socket")
                                                                    : std::string_view();
}

std::string_view vhost_server_file(std::string_view devargs) {
  const std::string_view client = argument_of(devargs, "client");
  return client.empty() || client == "0" ? argument_of(devargs, "iface") : std::string_view();
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

std::string socket_file_of(std::string_view devargs) {
  for (const auto& [driver, name] :
       {std::pair{"net_memif", "socket"}, std::pair{"net_vhost", "iface"},
        std::pair{"net_virtio_user", "path"}}) {
    if (devargs.starts_with(driver)) {
      return std::string(argument_of(devargs, name));
    }
  }
  return {};
}

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
