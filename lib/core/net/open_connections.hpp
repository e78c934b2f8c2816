// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace weir::net {

/// Bounds the connections that somebody else closes, without being told: a descriptor is still the
/// same connection while its socket has the same inode. Of those by the network an address has at
/// most a quarter.
class OpenConnections {
 public:
  explicit OpenConnections(std::size_t most) : most_(most) {}

  /// False: there are as many as allowed, of all or of this one's address; or the descriptor
  /// is no socket's. It is not counted.
  bool add(int descriptor);
  /// Ends those that are still open, whatever their other ends read. Who has them sees it, and
  /// closes them.
  void hang_up() const;

 private:
  struct Connection {
    int descriptor;
    ino_t inode;
    std::string from;
  };

  std::size_t most_;
  std::vector<Connection> open_;
};

} // namespace weir::net
