// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/foreign_sessions.hpp"
#include "conn/magic_rule.hpp"
#include "conn/refused_hellos.hpp"
#include "region/region_table.hpp"
#include "ring/current_rings.hpp"
#include "stage/forward.hpp"
#include "stage/loop_probes.hpp"
#include "wire/arp.hpp"

namespace weir::stage {

/// The way from dispatch to a ring's worker.
class WorkerSink {
 public:
  virtual ~WorkerSink() = default;

  /// `ring_group` names the rings concerned (ring::RingSet::ring_group_of_pair).
  virtual void to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) = 0;

  /// A RoCE packet to the regions' address.
  virtual void to_region(frame::Frame& frame, frame::Instant now) = 0;
};

static_assert(conn::kMostPorts == l2::kMaxPorts);

/// Where frames will leave, as the bridge has learnt. It outlives the function.
inline conn::ForeignSessions::WaysOut ways_out_by(const l2::Bridge& bridge) {
  return [&bridge](const frame::Frame& frame, std::uint64_t now) {
    return bridge.egress_of(frame.bytes(), frame.ingress, now).ports;
  };
}

/// Separates packets between ring neighbours from all others. The others are plain Ethernet, except
/// that the magic rule may drop them. A shut port, an impostor of a tied station, and a loop probe
/// end here too, and who asks for the regions' address is answered.
class Dispatch {
 public:
  Dispatch(const ring::CurrentRings& current, const conn::MagicRule::Settings& magic_rule,
           Forward& forward, WorkerSink& workers, const SentProbes& sent,
           const std::optional<region::Address>& regions);

  /// Takes a frame that Receive has parsed.
  void accept(frame::Frame& frame, frame::Instant now);

  /// Whether the magic rule forwards every stranger's RoCE frame from this port that has no INA
  /// header.
  bool remembers_nobody(std::uint16_t port) const { return magic_rule_.remembers_nobody(port); }

  /// Whether a frame between these stations may be for the regions, ask for their address, or
  /// pretend to come from them.
  bool may_concern_regions(const wire::EthernetHeader& ethernet) const {
    return regions_ && (ethernet.destination == regions_->mac || ethernet.destination.is_group() ||
                        ethernet.source == regions_->mac);
  }

  /// Whether a RoCE packet pretends to come from the regions.
  bool is_of_regions(const wire::IpAddress& source) const {
    return regions_ && source == regions_->ip;
  }

  /// Of the queue pairs of strangers.
  void set_aging(std::uint64_t milliseconds) { magic_rule_.set_aging(milliseconds); }

  const SeenProbes& seen_probes() const { return seen_; }

  const conn::RefusedHellos& refused_hellos() const { return refused_; }

 private:
  void drop(frame::Frame& frame, DropReason reason, frame::Instant now);
  void forward_foreign(frame::Frame& frame, frame::Instant now);
  bool is_for_regions(const frame::Frame& frame) const;
  bool is_impostor_of_regions(const frame::Frame& frame) const;
  wire::ArpRequest find_request_for_regions(const frame::Frame& frame) const;
  void accept_for_regions(frame::Frame& frame, frame::Instant now);
  const wire::LoopProbe* find_probe(const frame::Frame& frame) const;
  void accept_probe(frame::Frame& frame, const wire::LoopProbe& probe, frame::Instant now);
  l2::PortSet note_probe(const wire::LoopProbe& probe, std::uint16_t ingress);
  std::optional<DropReason> why_not_forwarded(frame::Frame& frame, frame::Instant now);

  const ring::CurrentRings& current_;
  conn::MagicRule magic_rule_;
  Forward& forward_;
  WorkerSink& workers_;
  const SentProbes& sent_;
  const std::optional<region::Address>& regions_; // none: there are no regions
  SeenProbes seen_;
  conn::RefusedHellos refused_;
};

} // namespace weir::stage
