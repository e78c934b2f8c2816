// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/classifier.hpp"
#include "conn/magic_rule.hpp"
#include "ring/current_rings.hpp"
#include "stage/forward.hpp"

namespace weir::stage {

/// Where dispatch hands the packets that a ring's worker must see.
class WorkerSink {
 public:
  virtual ~WorkerSink() = default;

  /// `group` names the rings concerned (ring::RingSet::group_of_pair).
  virtual void to_worker(frame::Frame& frame, std::uint16_t group, frame::Instant now) = 0;
};

/// Parts what lies between ring neighbours from the rest, which is Ethernet's business alone but
/// for the magic rule.
class Dispatch {
 public:
  Dispatch(const ring::CurrentRings& current, const conn::MagicRule::Settings& magic_rule,
           Forward& forward, WorkerSink& workers);

  /// Takes what Receive has seen.
  void accept(frame::Frame& frame, frame::Instant now);

 private:
  void forward_foreign(frame::Frame& frame, frame::Instant now);
  void drop(frame::Frame& frame, DropReason reason, frame::Instant now);

  const ring::CurrentRings& current_;
  conn::MagicRule magic_rule_;
  Forward& forward_;
  WorkerSink& workers_;
};

/// The magic rule between strangers remembers as much as the classifier does between neighbours.
inline conn::MagicRule::Settings magic_rule_settings(const conn::Classifier::Settings& settings) {
  return {settings.plain_entries, settings.aging, settings.hash_key, settings.foreign_sessions};
}

} // namespace weir::stage
