// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Simulated time of an all-reduce on a topology, for each algorithm and for Weir.

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
  double share = 0;         // of what the hosts' links allow
  plan::LinkId busiest = 0; // link
  double busy = 0;          // share of the time
};

/// Processing times of hosts and Weir switches, without their links. Other switches add only what
/// is in their cables' latency.
struct OwnCosts {
  std::uint64_t host_latency_ns = 0;  // from an interface to the program
  std::uint64_t host_addition = 0;    // bit/s of a tensor that a host adds; 0: no time
  std::uint64_t switch_packet_ns = 0; // of an lcore, for each packet
  // Added to it, from a packet's arrival to the frames that it causes.
  std::uint64_t switch_latency_ns = 0;
  std::uint32_t switch_lcores = 1;
};

struct ComparisonSettings {
  std::uint32_t most_rings = 64; // for Weir
  std::uint64_t least_bytes = 0; // sizes double from here to most_bytes
  std::uint64_t most_bytes = 0;
  OwnCosts costs;
};

/// Called before each run, with the number of runs and the name of this one.
using OnRun = std::function<void(std::size_t runs, std::string_view about)>;

/// By algorithm, then by size. Algorithms that cannot be used on the topology are left out.
std::vector<Comparison> compare(const plan::Topology& topology,
                                std::span<const plan::VertexId> participants,
                                const ComparisonSettings& settings, const OnRun& on_run);

/// A text table: by size, the fastest first; with a header and an explanation of the columns.
std::string comparison_table(const plan::Topology& topology,
                             std::span<const Comparison> comparisons);

/// As SVG.
std::string comparison_plot(std::span<const Comparison> comparisons);

} // namespace weir::app
