// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::test {

inline bool can_be_bound(std::uint16_t port) {
  const host::Socket socket([] { return ::socket(AF_INET, SOCK_STREAM, 0); });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

/// A loopback port on which no process listens, each time another one. Not of those that the kernel
/// gives to connections, nor of those where a test that runs at the same time begins: a port that
/// somebody else takes before the caller listens would lead its ranks to a stranger.
inline std::string free_address() {
  constexpr std::uint32_t first = 10'000;
  constexpr std::uint32_t ports = 20'000;
  constexpr std::uint32_t per_process = 64;
  static std::atomic<std::uint32_t> next = static_cast<std::uint32_t>(getpid()) * per_process;
  while (true) {
    const auto port = static_cast<std::uint16_t>(first + next++ % ports);
    if (can_be_bound(port)) {
      return "127.0.0.1:" + std::to_string(port);
    }
  }
}

} // namespace weir::test
