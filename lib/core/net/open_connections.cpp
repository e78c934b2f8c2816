// SPDX-License-Identifier: BSD-3-Clause
#include "net/open_connections.hpp"

#include "net/peer_address.hpp"

#include <algorithm>
#include <sys/socket.h>
#include <utility>

namespace weir::net {
namespace {

/// 0: the descriptor is closed, or no socket.
ino_t socket_inode(int descriptor) {
  struct stat status {};

  const bool is_socket = fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
  return is_socket ? status.st_ino : 0;
}

} // namespace

bool OpenConnections::add(int descriptor) {
  std::erase_if(open_, [](const Connection& connection) {
    return socket_inode(connection.descriptor) != connection.inode;
  });
  const ino_t inode = socket_inode(descriptor);
  if (inode == 0) {
    return false;
  }
  std::string from = network_of(address_of_peer(descriptor));
  const std::size_t most_of_it = from.empty() ? most_ : most_ / 4;
  const auto of_it = static_cast<std::size_t>(std::ranges::count(open_, from, &Connection::from));
  if (open_.size() >= most_ || of_it >= most_of_it) {
    return false;
  }
  open_.push_back({descriptor, inode, std::move(from)});
  return true;
}

void OpenConnections::hang_up() const {
  for (const Connection& connection : open_) {
    if (socket_inode(connection.descriptor) == connection.inode) {
      shutdown(connection.descriptor, SHUT_RDWR);
    }
  }
}

} // namespace weir::net
