// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <sys/stat.h>
#include <vector>

namespace weir::rpc {

/// Bounds the connections that somebody else closes, without being told: a descriptor is still the
/// same connection while its socket has the same inode.
class OpenConnections {
 public:
  explicit OpenConnections(std::size_t most) : most_(most) {}

  /// False: there are as many as allowed, and this one is not counted.
  bool add(int descriptor);

 private:
  struct Connection {
    int descriptor;
    ino_t inode;
  };

  std::size_t most_;
  std::vector<Connection> open_;
};

} // namespace weir::rpc
