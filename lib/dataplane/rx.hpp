// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/classify.hpp"
#include "conn/magic_rule.hpp"
#include "conn/ring_directory.hpp"
#include "dataplane/forward.hpp"

namespace weir::dataplane {

/// Where rx hands the packets that a ring's worker must see.
class WorkerSink {
 public:
  virtual ~WorkerSink() = default;

  /// `group` names the rings concerned (conn::RingDirectory::group_of_pair).
  virtual void to_worker(wire::Frame& frame, std::uint16_t group, Instant now) = 0;
};

/// The first stage: parse, learn the source, and part what lies between ring neighbours from the
/// rest, which is Ethernet's business alone. Keeps no state of rings, so any lcore may receive any
/// packet of their connections.
class Rx {
 public:
  Rx(const conn::RingDirectory& directory, const conn::MagicRule::Settings& magic_rule,
     l2::Bridge& bridge, Forwarder& forwarder, WorkerSink& workers, FrameCounters& counters);

  /// Parses, learns the source and finds out whether the frame lies between ring neighbours: then
  /// its pair is not 0. `frame` has data, length and ingress set.
  void look_at(wire::Frame& frame, Instant now);

  /// Hands on a frame that has been looked at.
  void pass_on(wire::Frame& frame, Instant now);

  void accept(wire::Frame& frame, Instant now) {
    look_at(frame, now);
    pass_on(frame, now);
  }

 private:
  void forward_foreign(wire::Frame& frame, Instant now);

  const conn::RingDirectory& directory_;
  conn::MagicRule magic_rule_;
  l2::Bridge& bridge_;
  Forwarder& forwarder_;
  WorkerSink& workers_;
  FrameCounters& counters_;
};

/// The magic rule between strangers remembers as much as the classifier does between neighbours.
inline conn::MagicRule::Settings magic_rule_settings(const conn::Classifier::Settings& settings) {
  return {settings.plain_entries, settings.aging, settings.hash_key, settings.foreign_sessions};
}

} // namespace weir::dataplane
