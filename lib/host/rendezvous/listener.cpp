// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/listener.hpp"

#include "host/base/error.hpp"
#include "host/base/host_addresses.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

/// Of the address that the socket has, whatever name the caller gave; or of this host, if it
/// listens everywhere.
std::vector<std::string> hosts_of(const Socket& socket, const std::string& preferred_ip) {
  const std::string own = local_host_of(socket);
  return is_wildcard(own) ? announced(read_host_addresses(), preferred_ip)
                          : std::vector<std::string>{own};
}

RendezvousPoint point_of(const Socket& socket, const std::string& preferred_ip) {
  const auto secret = random_bytes<32>();
  RendezvousPoint point{{}, std::string(secret.begin(), secret.end())};
  for (const std::string& host : hosts_of(socket, preferred_ip)) {
    point.endpoints.push_back({host, std::to_string(port_of(socket))});
  }
  return point;
}

} // namespace

Listener::Listener(const std::string& address, const std::string& preferred_ip) {
  try {
    socket_ = address.empty() ? listen_everywhere() : listen_at(*Endpoint::parse(address));
    handle_ = make_handle(point_of(socket_, preferred_ip));
  } catch (const std::runtime_error& error) {
    throw Error(ErrorCode::transport_failure, std::nullopt,
                fmt::format("listener: {}", error.what()));
  }
}

Socket Listener::take() {
  if (!birthplace_.is_here()) {
    throw Error(ErrorCode::transport_failure, 0,
                "listener: this process was made by a fork of the one that listens; only that one "
                "may use it");
  }
  const std::lock_guard lock(mutex_);
  if (!socket_) {
    throw std::invalid_argument("listener: found one that a group has used; allowed: a new one for "
                                "each group");
  }
  return std::exchange(socket_, Socket());
}

} // namespace weir::host
