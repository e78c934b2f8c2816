// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "network/link.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::bench {

using network::Time;

inline constexpr double kBitsPerNs = 100; // 100 Gbit/s
inline constexpr Time kDelay = 1000;      // of each link, ns

struct AllReduce {
  std::uint16_t ranks = 2;
  std::size_t bytes = 0; // of i32
  network::Ppm loss = 0; // share of frames
};

struct Outcome {
  Time duration = 0;          // without the hellos
  std::uint64_t repeated = 0; // packets, of all ranks
  bool is_finished = false;   // false: a queue pair has failed
};

/// One all-reduce in a star of equal links, with real queue pairs and the real switch. The seed
/// decides the losses. Errors: std::logic_error for a wrong result, or when there is no more
/// progress.
Outcome reduce_in_switch(const AllReduce& wanted, std::uint64_t seed);

/// The same by the hosts alone; the switch only forwards.
Outcome reduce_round_the_ring(const AllReduce& wanted, std::uint64_t seed);

} // namespace weir::bench
