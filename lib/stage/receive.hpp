// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/classify.hpp"
#include "conn/magic_rule.hpp"
#include "frame/frame.hpp"
#include "ring/ring_directory.hpp"
#include "stage/forward.hpp"

namespace weir::stage {

/// Where rx hands the packets that a ring's worker must see.
class WorkerSink {
 public:
  virtual ~WorkerSink() = default;

  /// `group` names the rings concerned (ring::RingDirectory::group_of_pair).
  virtual void to_worker(frame::Frame& frame, std::uint16_t group, frame::Instant now) = 0;
};

/// The first stage: parse, learn the source, and part what lies between ring neighbours from the
/// rest, which is Ethernet's business alone. Keeps no state of rings, so any lcore may receive any
/// packet of their connections.
class Receive {
 public:
  Receive(const ring::RingDirectory& directory, const conn::MagicRule::Settings& magic_rule,
          l2::Bridge& bridge, Forwarder& forwarder, WorkerSink& workers,
          frame::FrameCounters& counters);

  /// Parses, learns the source and finds out whether the frame lies between ring neighbours: then
  /// its pair is not 0. `frame` has data, length and ingress set.
  void look_at(frame::Frame& frame, frame::Instant now);

  /// Hands on a frame that has been looked at.
  void pass_on(frame::Frame& frame, frame::Instant now);

  void accept(frame::Frame& frame, frame::Instant now) {
    look_at(frame, now);
    pass_on(frame, now);
  }

 private:
  void forward_foreign(frame::Frame& frame, frame::Instant now);

  const ring::RingDirectory& directory_;
  conn::MagicRule magic_rule_;
  l2::Bridge& bridge_;
  Forwarder& forwarder_;
  WorkerSink& workers_;
  frame::FrameCounters& counters_;
};

/// The magic rule between strangers remembers as much as the classifier does between neighbours.
inline conn::MagicRule::Settings magic_rule_settings(const conn::Classifier::Settings& settings) {
  return {settings.plain_entries, settings.aging, settings.hash_key, settings.foreign_sessions};
}

} // namespace weir::stage
