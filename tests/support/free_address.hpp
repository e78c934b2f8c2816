// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"

#include <arpa/inet.h>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::test {

inline bool can_be_bound(std::uint16_t port) {
  const host::Socket socket([] { return ::socket(AF_INET, SOCK_STREAM, 0); });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

/// This process's among all tests on this machine, until it ends.
inline bool claim_block(std::uint32_t number) {
  static std::vector<host::Socket> claims;
  host::Socket claim([] { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "weir-test-ports-" + std::to_string(number);
  name.copy(address.sun_path + 1, name.size()); // abstract: it goes with the process
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool is_free = bind(claim.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0;
  if (is_free) {
    claims.push_back(std::move(claim));
  }
  return is_free;
}

/// A loopback port on which no process listens, each time another one. Not of those that the kernel
/// gives to connections, nor of another test's that runs at the same time: a port that somebody
/// else takes before the caller listens would lead its ranks to a stranger.
inline std::string free_address() {
  constexpr std::uint32_t first = 10'000;
  constexpr std::uint32_t per_block = 100;
  constexpr std::uint32_t blocks = 200;
  static std::mutex mutex;
  static std::uint32_t next = 0; // in the block
  static std::uint32_t block = static_cast<std::uint32_t>(getpid());
  const std::lock_guard lock(mutex);
  while (true) {
    if (next % per_block == 0) {
      while (!claim_block(++block % blocks)) {
      }
      next = 0;
    }
    const auto port = static_cast<std::uint16_t>(first + block % blocks * per_block + next++);
    if (can_be_bound(port)) {
      return "127.0.0.1:" + std::to_string(port);
    }
  }
}

} // namespace weir::test
