// SPDX-License-Identifier: BSD-3-Clause
#include "files/unix_peers.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>

namespace weir::files {
namespace {

/// Empty for all but sockets that have one.
std::string peer_path(int descriptor) {
  sockaddr_un address{};
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(descriptor, generic, &length) != 0 || address.sun_family != AF_UNIX) {
    return {};
  }
  const std::size_t known = std::min<std::size_t>(length, sizeof(address));
  const std::size_t begin = offsetof(sockaddr_un, sun_path);
  const std::string_view path(address.sun_path, std::max(known, begin) - begin);
  // An abstract path begins with a zero byte.
  const std::size_t first = path.find_first_not_of('\0');
  return first == std::string_view::npos ? "" : std::string(path.substr(first).data());
}

} // namespace

std::vector<UnixPeer> unix_peers() {
  std::vector<UnixPeer> peers;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int descriptor = std::stoi(entry.path().filename());
    if (std::string path = peer_path(descriptor); !path.empty()) {
      peers.push_back({descriptor, std::move(path)});
    }
  }
  return peers;
}

} // namespace weir::files
