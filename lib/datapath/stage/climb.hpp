// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/incarnations.hpp"
#include "stage/forward.hpp"
#include "stage/ring_state.hpp"

namespace weir::stage {

class Pipeline;

/// Tells the switch above that all children have said hello: by one hello, made from the last
/// child's (docs/protocol.md §11.5).
class Climb {
 public:
  explicit Climb(Pipeline& pipeline);

  /// The ring's newest complete set of hellos goes up now. There must be one.
  void send(std::uint16_t ring, frame::Instant now);

  /// Sends it again if its time has come. Returns when it is due next, in ns; kNever: no set is
  /// complete, or its patience is over.
  std::uint64_t send_again(std::uint16_t ring, frame::Instant now);

 private:
  void send(std::uint16_t ring, conn::WaitingHello& last, frame::Instant now);

  const ring::CurrentRings& current_;
  conn::Incarnations& incarnations_;
  RingStates& rings_;
  Forward& forward_;
};

} // namespace weir::stage
