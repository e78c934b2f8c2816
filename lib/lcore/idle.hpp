// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::lcore {

/// What an lcore does when a round found no work.
enum class Idle : std::uint8_t {
  spin,  // look again at once: lowest latency, the whole core
  yield, // let another thread of this core run
  sleep, // after many empty rounds rest some 50 µs
};

} // namespace weir::lcore
