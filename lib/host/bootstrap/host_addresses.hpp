// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace weir::host {

/// An address of an interface that is up.
struct HostAddress {
  enum class Reach { network, this_host };

  std::string text;
  Reach reach = Reach::network;
};

/// This host's, without IPv6's link-local ones, which mean nothing elsewhere. Throws
/// std::runtime_error.
std::vector<HostAddress> read_host_addresses();

/// Those at which other ranks may find this host: `preferred` first if it is among them, the
/// loopback only if there is nothing else.
std::vector<std::string> announced(const std::vector<HostAddress>& addresses,
                                   const std::string& preferred);

} // namespace weir::host
