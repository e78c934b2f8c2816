// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/climb.hpp"
#include "stage/recover.hpp"

namespace weir::stage {

class Classify;
class Pipeline;
class Region;

/// Acts where no packet comes: asks ranks whose packet is late, sends results again that nobody
/// acknowledges, and keeps the senders alive that wait for a slow rank (docs/protocol.md §9, §10).
class Timers {
 public:
  explicit Timers(Pipeline& pipeline);

  /// Acts on the rings whose time has come.
  void poll(frame::Instant now);

  /// A hello of the sender has begun to wait: the sender is to be kept alive.
  void expect_hello(const ring::RingChild& sender, frame::Instant now);

 private:
  std::uint64_t poll_ring(std::uint16_t ring, frame::Instant now);
  std::uint64_t poll_hellos(std::uint16_t ring, frame::Instant now);
  std::uint64_t poll_children(std::uint16_t ring, frame::Instant now);
  std::uint64_t longest_timer(std::uint16_t ring) const;
  std::uint64_t poll_sender(const ring::RingChild& sender, const std::optional<Stall>& stall,
                            std::uint64_t timer, frame::Instant now);
  std::optional<Stall> awaited_by(const ring::RingChild& sender) const;
  std::uint64_t ask_late(const ring::RingChild& sender, const Stall& stall, std::uint64_t timer,
                         frame::Instant now);
  std::uint64_t answer_later(const ring::RingChild& sender, frame::Instant now);
  std::uint64_t resend_overdue(const ring::RingChild& sender, frame::Instant now);
  std::uint64_t keep_alive(const ring::RingChild& sender, const Stall& stall, frame::Instant now);

  const ring::CurrentRings& current_;
  conn::Incarnations& incarnations_;
  const RingStates& rings_;
  Schedule& schedule_;
  Recover& recover_;
  Climb& climb_;
  Classify& classify_;
  Region& region_;
};

} // namespace weir::stage
