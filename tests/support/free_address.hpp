// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/stream.hpp"

#include <arpa/inet.h>
#include <string>
#include <sys/socket.h>

namespace weir::test {

/// A loopback port on which no process listens.
inline std::string free_address() {
  const host::Socket socket([] { return ::socket(AF_INET, SOCK_STREAM, 0); });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

} // namespace weir::test
