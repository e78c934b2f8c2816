// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/open_connections.hpp"

namespace weir::rpc {
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
  if (open_.size() >= most_) {
    return false;
  }
  open_.push_back({descriptor, socket_inode(descriptor)});
  return true;
}

} // namespace weir::rpc
