// SPDX-License-Identifier: BSD-3-Clause
#include "control/memif_socket.hpp"

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

/// Connects with another socket type than memif uses. If a process listens, the kernel rejects the
/// type (EPROTOTYPE) and the listener does not notice. A normal connection is not possible: DPDK
/// 22.11's listener aborts when a client leaves at once.
bool has_listener(const std::string& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (file.size() >= sizeof(address.sun_path)) {
    return true; // no process could have bound it
  }
  std::memcpy(address.sun_path, file.data(), file.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int answer = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const bool refused = answer != 0 && errno == ECONNREFUSED;
  close(probe);
  return !refused;
}

} // namespace

std::optional<std::string> memif_socket_file(std::string_view devargs) {
  const bool listens = devargs.starts_with("net_memif") &&
                       (argument(devargs, "role") == "server" ||
                        argument(devargs, "role") == "master"); // name before DPDK 20.11
  const std::string_view file = argument(devargs, "socket");
  if (!listens || file.empty() || argument(devargs, "socket-abstract") != "no") {
    return std::nullopt;
  }
  return std::string(file);
}

bool remove_stale_socket(const std::string& file) {
  struct stat status {};

  const bool is_socket = lstat(file.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
  return is_socket && !has_listener(file) && unlink(file.c_str()) == 0;
}

} // namespace weir::control
