// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Rank 0 of a rendezvous, and callers that know its protocol byte by byte.

#include "host/rendezvous/rendezvous.hpp"
#include "host_job.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace weir::host {

/// Rank 0 of `world` in a thread, until its gather is done.
class RankZero {
 public:
  RankZero(std::uint16_t world, const std::string& address, milliseconds timeout,
           const Credentials& credentials = {})
      : thread_([this, plan = RendezvousPlan{0, world, address, timeout, credentials}] {
          ending_ = ending_of([&] {
            Rendezvous rendezvous(plan);
            callers_turned_away_ = rendezvous.callers_turned_away();
            blobs_ = rendezvous.gather({});
          });
        }) {}

  Ending ending() {
    thread_.join();
    return ending_;
  }

  /// After ending().
  const std::vector<Blob>& blobs() const { return blobs_; }

  /// After ending().
  std::uint64_t callers_turned_away() const { return callers_turned_away_; }

 private:
  Ending ending_;
  std::vector<Blob> blobs_;
  std::uint64_t callers_turned_away_ = 0;
  std::thread thread_;
};

/// Connects as soon as somebody listens.
inline Socket connected_to(const std::string& address) {
  Socket socket;
  EXPECT_TRUE(test::comes_true([&] {
    socket =
        ConnectionAttempts({*Endpoint::parse(address)}).next(Clock::now() + milliseconds(2000));
    return static_cast<bool>(socket);
  }));
  return socket;
}

inline void say(const Socket& socket, std::string_view text) {
  ASSERT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

/// A control frame as docs/host.md has it.
inline std::string raw_frame(std::uint8_t kind, std::string_view body) {
  const std::uint32_t bytes = static_cast<std::uint32_t>(body.size());
  std::string frame = "WCTL";
  frame += static_cast<char>(kind);
  for (const unsigned shift : {24, 16, 8, 0}) {
    frame += static_cast<char>(bytes >> shift);
  }
  return frame.append(body);
}

/// A join without a secret, of the job without a name.
inline std::string raw_join(std::uint8_t rank, std::uint8_t world) {
  std::string body(16, 'n');
  for (const std::uint8_t byte : std::initializer_list<std::uint8_t>{0, rank, 0, world, 0, 0}) {
    body += static_cast<char>(byte);
  }
  return raw_frame(1, body);
}

/// What came, up to `bytes`. Less at the connection's end, or after two seconds.
inline std::string heard(const Socket& socket, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t have = 0;
  test::comes_true(
      [&] {
        const ssize_t count = recv(socket.get(), text.data() + have, bytes - have, 0);
        have += count > 0 ? static_cast<std::size_t>(count) : 0;
        return have == bytes || count == 0;
      },
      std::chrono::seconds(2));
  text.resize(have);
  return text;
}

/// Whether the other end has closed, within two seconds.
inline bool is_closed(const Socket& socket) {
  return test::comes_true(
      [&] {
        char byte = 0;
        return recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0;
      },
      std::chrono::seconds(2));
}

} // namespace weir::host
