// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Flare (SC'21 §4–6): a switch with K cores that fold packets, as a queue with K servers.

#include "netsim/simulation_error.hpp"
#include "netsim/time.hpp"

#include <cstdint>

namespace weir::netsim {

struct FoldServers {
  enum class Buffers : std::uint8_t {
    single,   // one buffer per block, in a critical section
    multiple, // `buffers` per block; the last packet adds them up
    tree,     // one buffer per packet, added in pairs in a fixed tree
  };
  Buffers design = Buffers::single;
  std::uint32_t buffers = 1;

  std::uint32_t servers = 512;         // K
  std::uint32_t servers_a_block = 512; // S: each block's packets go to S servers of its own
  Time fold_time = 1024 * kNanosecond; // L: to add a packet
  Time copy_time = 64 * kNanosecond;   // tree: to copy a packet into its buffer

  std::uint32_t children = 64;    // P: packets of a block
  std::uint64_t blocks = 1024;    // size of the reduction over a packet's payload
  Time spacing = 2 * kNanosecond; // δ: time between two packets' arrivals
  /// The order in which children send blocks: all the same, or child h from block h·blocks/P on
  /// (staggered sending, §5).
  enum class Sending : std::uint8_t { in_order, staggered };
  Sending sending = Sending::in_order;
  /// Time between arrivals: always `spacing`, or exponential with that mean.
  enum class Arrivals : std::uint8_t { regular, exponential };
  Arrivals arrivals = Arrivals::regular;
  std::uint64_t seed = 1;
};

struct FoldServersResult {
  Time duration = 0; // from the first arrival to the end of the last fold
  std::uint64_t packets = 0;
  std::uint64_t largest_queue = 0; // packets waiting or being served
  std::uint64_t most_buffers = 0;  // in use at once
  Time mean_block_latency = 0;     // from a block's first arrival to its end

  bool operator==(const FoldServersResult&) const = default;
};

/// Errors: SimulationError for settings that make no sense.
FoldServersResult run_fold_servers(const FoldServers& settings);

} // namespace weir::netsim
