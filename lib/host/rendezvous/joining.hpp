// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/control_note.hpp"
#include "host/base/stop_order.hpp"
#include "host/base/stream.hpp"
#include "host/rendezvous/handshake.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace weir::host {

struct JoinPlan {
  Claim claim;
  Credentials credentials;
  std::vector<Endpoint> endpoints; // where rank 0 may be; at others there may be anybody
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds keep_alive{10'000};
  std::optional<Sender> leader{};  // of a shrink; otherwise rank 0 answers
  const StopOrder* stop = nullptr; // null: none comes
};

/// The other ranks' side of the handshake. Returns the connection on which rank 0 has admitted this
/// rank. Comes again when nobody listens yet, when the connection closes, and when who listens does
/// not know the secret. Throws Error: at once when rank 0 turns this rank away or the order to stop
/// is given, otherwise after the timeout.
std::unique_ptr<FramedStream> join_rank_0(const JoinPlan& plan);

/// What came of a join on one connection.
struct JoinOutcome {
  std::unique_ptr<FramedStream> stream; // null: not admitted
  bool is_refused = false;              // who listens there says that it is of another job
};

/// The same on a connection to the plan's only endpoint, once. Not admitted when it closes, and
/// when who listens does not know the secret. Throws the Error that the leader tells.
JoinOutcome join_on(Socket connection, const JoinPlan& plan);

} // namespace weir::host
