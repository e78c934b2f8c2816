// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Klenk et al. (ISCA'20): all-reduce by reduction tables in the switches' ports and multicast, on
/// planes of switches as in a DGX-2 or a two-level fat tree. Also the ring that they compare with.

#include "netsim/network.hpp"
#include "netsim/simulation_error.hpp"
#include "netsim/time.hpp"

#include <cstdint>
#include <vector>

namespace weir::netsim {

/// `planes` equal networks; a GPU has one port on each. Each group has a leaf switch in each plane.
/// With two groups, their switches are joined by gpus_per_group parallel links (DGX-2). With more,
/// each has one link to each of the plane's `spines`.
struct RegionNetwork {
  std::uint32_t planes = 6;
  std::uint32_t groups = 2;
  std::uint32_t gpus_per_group = 8;
  std::uint32_t spines = 0; // per plane
  std::uint64_t bits_per_second = 200'000'000'000;
  Time switch_latency = 150 * kNanosecond;
  Time memory_latency = 120 * kNanosecond; // 180 cycles of 1.5 GHz
  Time memory_spread = 120 * kNanosecond;  // a random time below this is added
  /// A GPU whose ports have half of the rate.
  std::uint32_t slow_gpu = kNobody;
  /// A GPU that begins `late_by` after the others.
  std::uint32_t late_gpu = kNobody;
  Time late_by = 0;
};

RegionNetwork dgx2_network();
RegionNetwork klenk_fat_tree();

struct RegionSettings {
  enum class Method : std::uint8_t {
    push,              // §IV-C: reduction writes meet at an address's home port
    pull,              // §IV-B: reduction reads, then a multicast write
    pull_synchronised, // the same after an all-reduce of one packet
  };
  Method method = Method::push;
  std::uint32_t gpus = 16; // participants; number i is in group i mod groups
  std::uint32_t payload_bytes = 128;
  std::uint32_t header_bytes = 16; // also of a request and of an acknowledgement
  std::uint32_t table_bytes = 256; // of payload, per port
  std::uint32_t wave_bytes = 8192;
  /// The order in which a GPU injects the packets of a wave, or of all its waves when there is no
  /// limit: by address, or an order of its own ("not guaranteed", §IV-F).
  enum class Order : std::uint8_t { by_address, arbitrary };
  Order order = Order::arbitrary;
  std::uint32_t waves = 16;              // outstanding waves of a GPU; 0: no limit (§IV-F1)
  Time entry_timeout = 2 * kMicrosecond; // push: of an entry that gets no more packets
  std::uint32_t memory_reads = 64;       // outstanding reads of a GPU on a plane
  std::uint64_t seed = 1;
};

struct RegionResult {
  Time duration = 0;
  Time mean_latency = 0;   // of packets with payload, from a GPU or a table to the next
  Time median_latency = 0; // to 3 %
  Time p99_latency = 0;
  std::uint64_t folded = 0;    // packets added in a table
  std::uint64_t evictions = 0; // push: partial sums sent to home GPUs
  std::uint64_t bypasses = 0;  // pull: responses that found no entry
  std::uint64_t events = 0;

  bool operator==(const RegionResult&) const = default;
};

/// Queues have no limit. A packet goes on when all of it has arrived. A write on a link is
/// acknowledged by a header on the way back, for which nothing waits. Errors: SimulationError for
/// settings that make no sense.
RegionResult run_region(const RegionNetwork& network, std::uint64_t bytes,
                        const RegionSettings& settings);

} // namespace weir::netsim
