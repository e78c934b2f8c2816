// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::lcore {

/// What an lcore does after a round without work.
enum class Idle : std::uint8_t {
  spin,  // poll again at once: lowest latency, uses the whole core
  yield, // let another thread of this core run
  sleep, // after many empty rounds, sleep for some 50 µs
};

} // namespace weir::lcore
