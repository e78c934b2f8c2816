// SPDX-License-Identifier: BSD-3-Clause
#include "net/peer_address.hpp"

#include <cstddef>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>

namespace weir::net {
namespace {

constexpr std::size_t kNetworkBytes = 8; // of IPv6

template <typename Address>
std::string bytes_of(const Address& address) {
  return {reinterpret_cast<const char*>(&address), sizeof address};
}

/// An address of IPv4 as IPv6 writes it.
bool is_mapped(const std::string& address) {
  in6_addr bytes{};
  std::memcpy(&bytes, address.data(), sizeof bytes);
  return IN6_IS_ADDR_V4MAPPED(&bytes);
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
    return bytes_of(reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr);
  }
  return {};
}

std::string network_of(const std::string& address) {
  const bool is_ipv6 = address.size() == sizeof(in6_addr);
  return is_ipv6 && !is_mapped(address) ? address.substr(0, kNetworkBytes) : address;
}

} // namespace weir::net
