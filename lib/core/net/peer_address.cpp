// SPDX-License-Identifier: BSD-3-Clause
#include "net/peer_address.hpp"

#include <cstddef>
#include <netinet/in.h>
#include <sys/socket.h>

namespace weir::net {
namespace {

constexpr std::size_t kNetworkBytes = 8; // of IPv6

template <typename Address>
std::string bytes_of(const Address& address, std::size_t count = sizeof(Address)) {
  return {reinterpret_cast<const char*>(&address), count};
}

} // namespace

std::string address_of_peer(int connection) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  getpeername(connection, reinterpret_cast<sockaddr*>(&peer), &length);
  if (peer.ss_family == AF_INET) {
    return bytes_of(reinterpret_cast<const sockaddr_in&>(peer).sin_addr);
  }
  if (peer.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    return bytes_of(address, IN6_IS_ADDR_V4MAPPED(&address) ? sizeof address : kNetworkBytes);
  }
  return {};
}

} // namespace weir::net
