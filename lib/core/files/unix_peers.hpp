// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace weir::files {

/// A descriptor of this process that is connected to a Unix socket.
struct UnixPeer {
  int descriptor = -1;
  std::string path; // of the other end; an abstract one without its zero byte
};

/// All of them, also those that libraries have opened.
std::vector<UnixPeer> unix_peers();

} // namespace weir::files
