// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

namespace weir::lcore {

/// What an lcore does after a round without work.
enum class Idle : std::uint8_t {
  spin,  // poll again at once: lowest latency, uses the whole core
  yield, // let another thread of this core run
  sleep, // after many empty rounds, sleep, for as long as sleep_after() says
};

/// How long an lcore sleeps after so many rounds without work in a row: not at all, for 50 µs, and
/// after some 20 ms for 200 µs, which costs half of the CPU time. The first frame then waits.
constexpr std::chrono::microseconds sleep_after(unsigned empty_rounds) {
  constexpr unsigned kRounds = 2000;
  constexpr unsigned kShortRests = 200;
  if (empty_rounds <= kRounds) {
    return std::chrono::microseconds(0);
  }
  return std::chrono::microseconds(empty_rounds <= kRounds + kShortRests ? 50 : 200);
}

} // namespace weir::lcore
