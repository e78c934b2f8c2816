// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_table.hpp"
#include "recovery/answer_template.hpp"

#include <cstdint>

namespace weir::stage {

/// How the switch reaches a sender of the incarnation that another one has ended, and what it may
/// say to it (docs/protocol.md §2a, "Told").
struct Farewell {
  recovery::AnswerTemplate answers; // empty: nothing is said
  conn::QueuePair connection;       // that its packets name
  std::uint32_t unacknowledged = 0; // a, when the incarnation ended
  std::uint16_t port = 0;           // that its packets came by
  std::uint64_t claim = 0;          // conn::QueuePairClaims' name of its own queue pair
  std::uint64_t said_at_ns = 0;
};

} // namespace weir::stage
