// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The addresses of this host's interfaces, as the kernel lists them. All is in this header, for
/// who is not linked with the library's inside.

#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>

namespace weir::host {

struct FreeInterfaceAddresses {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

using InterfaceAddresses = std::unique_ptr<ifaddrs, FreeInterfaceAddresses>;

/// A list by `ifa_next`. Throws std::runtime_error.
inline InterfaceAddresses read_interface_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    throw std::runtime_error(std::string("cannot read this host's addresses: ") +
                             std::strerror(errno));
  }
  return InterfaceAddresses(list);
}

/// Bytes of the socket address. 0 for one that another host cannot use: of neither IPv4 nor IPv6,
/// or link-local.
inline socklen_t length_of(const sockaddr* address) {
  if (address == nullptr) {
    return 0;
  }
  if (address->sa_family == AF_INET) {
    return sizeof(sockaddr_in);
  }
  const bool is_ipv6 = address->sa_family == AF_INET6;
  return is_ipv6 &&
                 !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)
             ? sizeof(sockaddr_in6)
             : 0;
}

} // namespace weir::host
