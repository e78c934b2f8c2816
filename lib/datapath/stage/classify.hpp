// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/classifier.hpp"
#include "conn/incarnations.hpp"
#include "conn/refused_hellos.hpp"
#include "l2/bridge.hpp"
#include "stage/aggregate.hpp"
#include "stage/climb.hpp"
#include "stage/flow_cache.hpp"
#include "stage/timers.hpp"
#include "stage/worker_state.hpp"

namespace weir::stage {

class Pipeline;

/// Asks the classifier for the verdict on a packet between ring neighbours, and acts on it. Begins
/// a ring's incarnation when every child has said hello.
class Classify {
 public:
  explicit Classify(Pipeline& pipeline);

  /// Takes what Dispatch hands to the worker, or any frame that conn::Classifier::classify takes.
  void accept(frame::Frame& frame, frame::Instant now);

  /// Drops the frames that the ring holds and ends its connections.
  void reset_ring(std::uint16_t ring, frame::Instant now);

  /// As reset_ring(), because an operator of the incarnation gives other bits than its loops. The
  /// senders are told that the work cannot go on (IBTA §9.7.5.2.8: remote operational error).
  void end_disagreeing(std::uint16_t ring, frame::Instant now);

  /// See conn::Incarnations::drain.
  void drain_ring(std::uint16_t ring, frame::Instant now);

  /// As conn::Incarnations::update_ports. The hosts' MAC addresses are pinned to these ports too.
  void update_ports(std::uint16_t ring, frame::Instant now);

  /// Ends the connections of a ring that leaves the set before the next packet. Its frames stay in
  /// its slots.
  conn::RingConnections withdraw_ring(std::uint16_t ring, frame::Instant now);

 private:
  void forward(frame::Frame& frame, frame::Instant now);
  void interleave(frame::Frame& frame, const ring::RingChild& sender, frame::Instant now);
  void begin_incarnation(std::uint16_t ring, frame::Instant now);
  void begin_below(const ring::RingChild& parent, frame::Frame& total, frame::Instant now);
  void take_hellos(std::uint16_t ring, std::span<frame::Frame* const> hellos, frame::Instant now);
  void flush(std::uint16_t ring, DropReason reason, frame::Instant now);
  void reset_ring(std::uint16_t ring, DropReason reason, wire::NakCode why, frame::Instant now);
  void end_connections(std::uint16_t ring, frame::Instant now);
  void drop_given_up_hellos(frame::Instant now);

  const ring::CurrentRings& current_;
  conn::Classifier& classifier_;
  conn::Incarnations& incarnations_;
  conn::RefusedHellos& refused_;
  RingStates& rings_;
  l2::Bridge& bridge_;
  FlowCache& flow_cache_;
  Aggregate& aggregate_;
  Emit& emit_;
  Recover& recover_;
  Climb& climb_;
  Timers& timers_;
  Forward& forward_;
  WorkerPeers* peers_; // nullptr: there is one worker
  frame::FrameCounters& counters_;
};

} // namespace weir::stage
