// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/message_window.hpp"
#include "host_traits.hpp"
#include "network/link.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::bench {

using network::Time;

inline constexpr double kBitsPerNs = 100; // 100 Gbit/s
inline constexpr Time kDelay = 1000;      // of each link, ns

/// A link that loses this share of its frames, each by itself.
constexpr network::LinkTraits lossy_link(network::Ppm loss) {
  return {.bits_per_ns = kBitsPerNs, .delay = kDelay, .loss = loss};
}

struct AllReduce {
  std::uint16_t ranks = 2;
  std::size_t bytes = 0;   // of i32
  std::uint32_t calls = 1; // all-reduces of equal length, begun at once; through the switch alone
  network::LinkTraits links = lossy_link(0);
  /// Rank 0's link, where it differs from the others. The first of its outages comes by up to
  /// the tensor's time on the link later than it says.
  std::optional<network::LinkTraits> first_link;
  /// What other stations send to rank 0, as a share of its link's rate.
  network::Ppm foreign_load = 0;
  HostTraits hosts;

  /// Time of a good link for the tensor in frames of full payload, ns.
  double link_time() const;
};

struct Outcome {
  Time duration = 0;          // without the hellos
  std::uint64_t repeated = 0; // packets, of all ranks
  std::uint64_t refused = 0;  // frames that found no room at a port of the switch
  bool is_finished = false;   // false: a queue pair has failed
};

/// What the window of that rank is told.
host::WindowConfig window_of(const AllReduce& wanted, std::uint16_t rank);

/// One all-reduce in a star of links, with real queue pairs and the real switch. The seed
/// decides the losses. Errors: std::logic_error for a wrong result, or when there is no more
/// progress; std::invalid_argument for traits that queue pairs do not allow.
Outcome reduce_in_switch(const AllReduce& wanted, std::uint64_t seed);

/// The same by the hosts alone; the switch only forwards.
Outcome reduce_round_the_ring(const AllReduce& wanted, std::uint64_t seed);

} // namespace weir::bench
