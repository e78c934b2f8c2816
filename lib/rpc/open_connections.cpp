// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/open_connections.hpp"

#include <algorithm>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

namespace weir::rpc {
namespace {

/// 0: the descriptor is closed, or no socket.
ino_t socket_inode(int descriptor) {
  struct stat status {};

  const bool is_socket = fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
  return is_socket ? status.st_ino : 0;
}

template <typename Address>
std::string bytes_of(const Address& address, std::size_t count = sizeof(Address)) {
  return {reinterpret_cast<const char*>(&address), count};
}

/// Whose part a connection takes; empty: a Unix socket's, or of one who has gone already.
std::string address_of(int descriptor) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length);
  if (peer.ss_family == AF_INET) {
    return bytes_of(reinterpret_cast<const sockaddr_in&>(peer).sin_addr);
  }
  if (peer.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    return bytes_of(address, IN6_IS_ADDR_V4MAPPED(&address) ? sizeof address : 8);
  }
  return {};
}

} // namespace

bool OpenConnections::add(int descriptor) {
  std::erase_if(open_, [](const Connection& connection) {
    return socket_inode(connection.descriptor) != connection.inode;
  });
  std::string from = address_of(descriptor);
  const std::size_t most_of_it = from.empty() ? most_ : most_ / 4;
  const auto of_it = static_cast<std::size_t>(std::ranges::count(open_, from, &Connection::from));
  if (open_.size() >= most_ || of_it >= most_of_it) {
    return false;
  }
  open_.push_back({descriptor, socket_inode(descriptor), std::move(from)});
  return true;
}

} // namespace weir::rpc
