// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What an all-reduce costs on a topology, by algorithm and by Weir, simulated.

#include "plan/topology.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

struct Comparison {
  std::string algorithm;
  std::uint64_t bytes = 0;
  double microseconds = 0;
  double share = 0;         // of what the hosts' links allow it
  plan::LinkId busiest = 0; // link
  double busy = 0;          // share of the time
};

/// What hosts and Weir switches take of themselves, beside their links. Other switches take nothing
/// but what is in their cables' latency.
struct OwnCosts {
  std::uint64_t host_latency_ns = 0;   // from an interface to the program
  std::uint64_t host_addition = 0;     // bit/s of a tensor that a host adds; 0: no time
  std::uint64_t switch_packet_ns = 0;  // of an lcore, for a packet
  std::uint64_t switch_latency_ns = 0; // besides, from a packet's arrival to what it sets off
  std::uint32_t switch_lcores = 1;
};

/// Of a ring of Weir's. 0: a command's own.
struct RingNumbers {
  std::uint32_t mtu = 0; // path MTU; of all algorithms' frames
  std::uint32_t window = 8;
  std::uint32_t message_bytes = 65536;
};

struct ComparisonSettings {
  std::uint32_t most_rings = 64; // of Weir
  std::uint64_t least_bytes = 0; // by doubling up to most_bytes
  std::uint64_t most_bytes = 0;
  OwnCosts costs;
  RingNumbers ring_numbers; // its mtu is a number
};

/// Called before each plan is made and before each run: how many of both there are, and what comes.
using OnPiece = std::function<void(std::size_t pieces, std::string_view about)>;

/// By algorithm, then by size; those that do not fit the topology are left out.
std::vector<Comparison> compare(const plan::Topology& topology,
                                std::span<const plan::VertexId> participants,
                                const ComparisonSettings& settings, const OnPiece& on_piece);

/// For people: by size, the fastest first; with a header and notes on what the columns mean and
/// what was assumed.
std::string comparison_table(const plan::Topology& topology,
                             std::span<const Comparison> comparisons, const RingNumbers& numbers);

/// As SVG.
std::string comparison_plot(std::span<const Comparison> comparisons);

} // namespace weir::app
