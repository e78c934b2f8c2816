// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <sys/socket.h>
#include <utility>

namespace weir::test {

using Stream = std::unique_ptr<host::FramedStream>;

/// Two ends of one connection between ranks.
inline std::pair<Stream, Stream> stream_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const auto stream = [](int end) {
    return std::make_unique<host::FramedStream>(host::Socket([end] { return end; }));
  };
  return {stream(ends[0]), stream(ends[1])};
}

} // namespace weir::test
