// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::host {

/// An address of an interface that is up.
struct HostAddress {
  enum class Reach { network, this_host };

  std::string text;
  Reach reach = Reach::network;
  std::string interface;
};

/// This host's, without IPv6's link-local ones, which mean nothing elsewhere. Throws
/// std::runtime_error.
std::vector<HostAddress> read_host_addresses();

/// Those at which other ranks may find this host: `preferred` first if it is among them, the
/// loopback only if there is nothing else.
std::vector<std::string> announced(const std::vector<HostAddress>& addresses,
                                   const std::string& preferred);

/// Those at which ranks elsewhere may look for this host, which has met others at `met`: these, if
/// all of them are of networks. A loopback address means another host there, and a link-local one
/// means nothing beyond its link: then all that would be announced, or the link-local ones where no
/// interface has an address of a network.
std::vector<std::string> announced(const std::vector<HostAddress>& addresses,
                                   const std::set<std::string>& met);

/// Whether all of these can only be this host's for itself.
bool are_of_this_host(const std::set<std::string>& met, const std::vector<HostAddress>& addresses);

/// Whether it stands for every address of the host that listens there: nobody can connect to it.
bool is_wildcard(std::string_view address);

/// The interface's one IPv4 address, or its one IPv6 address if it has no IPv4. Throws Error if it
/// has several, or none.
std::string own_address(const std::vector<HostAddress>& addresses, const std::string& interface);

} // namespace weir::host
