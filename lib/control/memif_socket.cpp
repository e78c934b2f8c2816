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

/// Of `name=value,…`; empty when the name is not there.
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

/// Asks by connecting with another type than memif's: where somebody listens, the kernel refuses
/// the type (EPROTOTYPE) and the listener learns nothing. (DPDK 22.11's aborts when a client leaves
/// at once.)
bool has_listener(const std::string& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (file.size() >= sizeof(address.sun_path)) {
    return true; // nobody could have bound it, nor can we
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
                        argument(devargs, "role") == "master"); // its name before DPDK 20.11
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
