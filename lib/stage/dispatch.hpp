// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/classifier.hpp"
#include "conn/magic_rule.hpp"
#include "ring/current_rings.hpp"
#include "stage/forward.hpp"

namespace weir::stage {

/// The way from dispatch to a ring's worker.
class WorkerSink {
 public:
  virtual ~WorkerSink() = default;

  /// `group` names the rings concerned (ring::RingSet::group_of_pair).
  virtual void to_worker(frame::Frame& frame, std::uint16_t group, frame::Instant now) = 0;
};

/// Separates packets between ring neighbours from all others. The others are plain Ethernet, except
/// that the magic rule may drop them.
class Dispatch {
 public:
  Dispatch(const ring::CurrentRings& current, const conn::MagicRule::Settings& magic_rule,
           Forward& forward, WorkerSink& workers);

  /// Takes a frame that Receive has parsed.
  void accept(frame::Frame& frame, frame::Instant now);

  /// Whether the magic rule forwards every stranger's RoCE frame that has no INA header.
  bool remembers_nobody() const { return magic_rule_.remembers_nobody(); }

  /// Of the queue pairs of strangers.
  void set_aging(std::uint64_t milliseconds) { magic_rule_.set_aging(milliseconds); }

 private:
  void forward_foreign(frame::Frame& frame, frame::Instant now);

  const ring::CurrentRings& current_;
  conn::MagicRule magic_rule_;
  Forward& forward_;
  WorkerSink& workers_;
};

/// The magic rule for strangers remembers as many queue pairs as the classifier does for
/// neighbours.
inline conn::MagicRule::Settings magic_rule_settings(const conn::Classifier::Settings& settings) {
  return {settings.plain_entries, settings.aging, settings.hash_key, settings.foreign_sessions};
}

} // namespace weir::stage
