// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The rings of the fuzzers that have a switch or a part of one, and frames for them.

#include "ring/ring_spec.hpp"
#include "support/ring_job.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::fuzz {

inline constexpr std::uint32_t kSession = 1; // the first incarnation's, as in the captures

inline ring::RingSpec captured_ring(std::uint32_t id, std::uint32_t window, std::uint16_t world) {
  ring::RingSpec spec{
      .id = id, .window = window, .max_message_bytes = 4096, .mtu = 256, .members = {}};
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    spec.members.push_back({*wire::parse_ip("10.77.0." + std::to_string(rank + 1)), std::nullopt});
  }
  return spec;
}

/// One job for each encapsulation, with three members that are tied to their ports.
inline std::vector<test::JobSpec> job_specs() {
  std::vector<test::JobSpec> specs;
  for (const test::Network network : test::kNetworks) {
    const auto number = static_cast<std::uint8_t>(specs.size() + 1);
    specs.push_back({.ring = number,
                     .world = 3,
                     .network = network,
                     .session = kSession,
                     .pins_ports = true,
                     .network_id = number});
  }
  return specs;
}

/// The ring of the captures, a second ring over two of its hosts, and the rings of the jobs.
inline std::vector<ring::RingSpec> rings() {
  std::vector<ring::RingSpec> rings{captured_ring(7, 1, 3), captured_ring(8, 2, 2)};
  for (const test::JobSpec& spec : job_specs()) {
    rings.push_back(test::RingJob(spec).ring());
  }
  return rings;
}

} // namespace weir::fuzz
