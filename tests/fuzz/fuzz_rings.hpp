// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The rings and regions of the fuzzers that have a switch or a part of one, and frames for them.

#include "program/loaded_operators.hpp"
#include "program/operator.hpp"
#include "program/parse.hpp"
#include "ring/ring_spec.hpp"
#include "support/region_members.hpp"
#include "support/ring_job.hpp"
#include "wire/operator_table.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

inline constexpr std::string_view kOperatorText =
    "weir-operator 1\nname clipped\nread i8 v\nlanes i16\n"
    "identity v 0\nstart acc = v\nfold acc = acc + v\n"
    "finish flag when acc > 127 | acc < -128\n"
    "  out = clip(acc)\n";

/// The trial is made once.
inline const program::Digest& operator_digest() {
  static const program::Digest digest = program::Operator::load(kOperatorText)->digest();
  return digest;
}

/// An operator of its own each time: a sanitizer sees who uses it when it has gone.
inline std::shared_ptr<const program::LoadedOperators> loaded_operators() {
  auto loaded = std::make_shared<const program::Operator>(
      program::FoldProgram(program::parse(kOperatorText), op::CpuLevel::baseline),
      operator_digest());
  return std::make_shared<const program::LoadedOperators>(
      std::vector<program::LoadedOperator>{{std::move(loaded), {{}}}});
}

/// A job whose hellos name the operator and one that no switch has.
inline test::JobSpec operators_job_spec() {
  wire::OperatorTable table;
  table.add(operator_digest());
  table.add({1, 2, 3});
  const auto bytes = table.bytes();
  return {.ring = 30,
          .world = 3,
          .session = kSession,
          .pins_ports = true,
          .operators = {bytes.begin(), bytes.end()},
          .network_id = 30};
}

/// The ring of the captures, a second ring over two of its hosts, and the rings of the jobs.
inline std::vector<ring::RingSpec> rings() {
  std::vector<ring::RingSpec> rings{captured_ring(7, 1, 3), captured_ring(8, 2, 2),
                                    test::RingJob(operators_job_spec()).ring()};
  for (const test::JobSpec& spec : job_specs()) {
    rings.push_back(test::RingJob(spec).ring());
  }
  return rings;
}

/// Two regions, that hold little. The second one has a member behind a port with a small MTU.
inline std::vector<test::RegionMembers> regions() {
  std::vector<test::RegionMembers> regions{test::RegionMembers(1, 3), test::RegionMembers(2, 4)};
  for (test::RegionMembers& region : regions) {
    region.spec.mtu = 256;
    region.spec.window = 4;
    region.spec.loopback = region.spec.id == 1 ? region::Loopback::on : region::Loopback::off;
  }
  return regions;
}

} // namespace weir::fuzz
