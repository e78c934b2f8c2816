// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/rendezvous/admission.hpp"
#include "host/shrink/liveness_probe.hpp"
#include "host/shrink/survivors.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

namespace weir::host {

/// The pause between two looks of a rank that waits for others in a shrink.
inline constexpr std::chrono::milliseconds kPollPeriod{10};

/// Who does not answer within this time is left out.
std::chrono::milliseconds silence_limit(const GroupHistory& history,
                                        std::chrono::milliseconds timeout);

/// The part of the rank that leads a shrink: it waits for every other rank, and says who goes on.
/// Ranks are original ranks.
class ShrinkLeader {
 public:
  /// What the way to lead has shown of the lower ranks.
  struct Absent {
    std::set<std::uint16_t> ended;
    std::set<std::uint16_t> silent;
  };

  ShrinkLeader(GroupHistory& history, const ShrinkPlan& plan, Absent absent, Deadline deadline);

  /// Throws Error, and tells it to the ranks that have come.
  Survivors run();

 private:
  void hear(std::chrono::milliseconds time);
  void seat(PendingPeer peer);
  void probe();
  bool has_come(std::uint16_t rank);
  std::set<std::uint16_t> awaited();
  ShrinkMembership who_goes_on() const;
  void check(const ShrinkMembership& membership) const;
  Survivors conclude();
  [[noreturn]] void abandon(const Error& error) const;

  GroupHistory& history_;
  const ShrinkPlan& plan_;
  Absent absent_;
  const Deadline deadline_;
  Admission admission_;
  std::map<std::uint16_t, LivenessProbe> above_; // members with higher ranks
  std::map<std::uint16_t, std::unique_ptr<FramedStream>> seats_;
};

} // namespace weir::host
