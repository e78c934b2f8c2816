// SPDX-License-Identifier: BSD-3-Clause
#include "control/device_socket.hpp"

#include "control/listener_queue.hpp"
#include "ethdev/drivers.hpp"
#include "files/unix_peers.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace weir::control {
namespace {

using ethdev::argument_of;

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

Occupant occupant_at(std::string_view devargs) {
  const ethdev::DriverSocket& socket = ethdev::driver_of(devargs).socket;
  return occupant_of({socket_file_of(devargs), socket.type, socket.is_shared});
}

} // namespace

std::string socket_file_of(std::string_view devargs) {
  const std::string_view argument = ethdev::driver_of(devargs).socket.argument;
  return argument.empty() ? std::string() : std::string(argument_of(devargs, argument));
}

std::optional<DeviceSocket> device_socket(std::string_view devargs) {
  const ethdev::DriverSocket& socket = ethdev::driver_of(devargs).socket;
  std::string file = socket_file_of(devargs);
  const bool listens = socket.listens != nullptr && socket.listens(devargs);
  if (!listens || file.empty() || ethdev::is_abstract(socket, devargs)) {
    return std::nullopt;
  }
  return DeviceSocket{std::move(file), socket.type, socket.is_shared};
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

bool connects_once(std::string_view devargs) {
  const ethdev::DriverSocket& socket = ethdev::driver_of(devargs).socket;
  return socket.connects_once != nullptr && socket.connects_once(devargs) &&
         !ethdev::is_abstract(socket, devargs);
}

std::vector<std::uint64_t> connections_of(std::string_view devargs) {
  std::vector<std::uint64_t> inodes;
  if (!connects_once(devargs)) {
    return inodes;
  }
  const std::filesystem::path file = socket_file_of(devargs);
  for (const files::UnixPeer& peer : files::unix_peers()) {
    struct stat status {};

    if (std::filesystem::path(peer.path).filename() == file.filename() &&
        fstat(peer.descriptor, &status) == 0) {
      inodes.push_back(status.st_ino);
    }
  }
  return inodes;
}

bool has_to_wait_for_listener(std::string_view devargs) {
  return connects_once(devargs) && (occupant_at(devargs) != Occupant::listener ||
                                    waiting_callers(socket_file_of(devargs)) > 0);
}

} // namespace weir::control
