// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "expected_results.hpp"
#include "scenario.hpp"

#include <cstdint>
#include <vector>

namespace weir::fabric {

/// What a member and its neighbours know before it starts.
struct Seat {
  std::uint32_t outgoing_qp = 0;
  std::uint32_t incoming_qp = 0;
  std::uint32_t outgoing_psn = 0;
  std::uint32_t incoming_psn = 0;
  std::uint32_t inbox_key = 0;
  std::uint64_t inbox_base = 0; // any number: each host has its own address space
};

/// One run of a ring's job, shared by its members.
struct JobRun {
  const RingPlan& plan;
  std::uint16_t ring = 0; // index
  std::uint32_t generation = 0;
  std::uint32_t epoch = 0;
  std::uint32_t nonce = 0;
  ExpectedResults expected;
  std::vector<Seat> seats = {}; // by rank
};

} // namespace weir::fabric
