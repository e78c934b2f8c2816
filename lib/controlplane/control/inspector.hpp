// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/leases.hpp"
#include "control/loop_judge.hpp"
#include "control/memory.hpp"
#include "control/no_such_ring.hpp"
#include "control/snapshots.hpp"
#include "control/tenants.hpp"
#include "lcore/quiesce.hpp"
#include "stage/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::control {

struct Chassis;
class Loops;
class Port;
class PortCounts;
class RingAdmin;

/// Answers questions about the switch; it changes nothing. Any thread may ask.
///
/// Port counters are read while the lcores run. Answers that must be consistent are copied while
/// all lcores are stopped, for some microseconds and once per question; lists of connections take
/// several stops. All other work is done after the stop.
class Inspector {
 public:
  /// All outlive it.
  Inspector(const Chassis& chassis, const RingAdmin& rings, const PortCounts& counts,
            const Loops& loops)
      : chassis_(chassis), rings_(rings), counts_(counts), loops_(loops) {}

  // These do not stop the lcores.

  /// As it is in force, but for the rings. Its ports are at their places: a port's place is its
  /// number everywhere in the switch.
  std::shared_ptr<const config::Config> config() const;
  /// By place; nullptr where there is no port. A port that goes meanwhile has nothing to say.
  std::vector<std::shared_ptr<const Port>> ports() const;
  /// The rings at this moment.
  std::shared_ptr<const ring::RingSet> ring_set() const;
  /// Counts since PortAdmin::clear_counters().
  frame::PortCounters port_counters(std::uint16_t port) const;
  /// What is known of loops at the port.
  PortLoops loops(std::uint16_t port) const;
  /// The MAC table, in no order.
  std::vector<Station> stations() const;
  const Tenants& tenants() const;
  const MemoryPlan& memory_plan() const;
  /// Number of free mbufs.
  std::uint32_t free_mbufs() const;
  std::uint32_t all_mbufs() const;
  lcore::StopTimes stop_times() const;
  /// How many hellos that tell of a difference have come: more, and refused_hellos() has news.
  std::uint64_t refusals() const;
  /// Where frames cross between NUMA nodes, in words. Empty where all is on one node.
  std::vector<std::string> numa_warnings() const;

  // These do. All throw lcore::LcoreError.

  stage::Accounting accounting() const;
  std::vector<LcoreSnapshot> lcores() const;
  /// All rings that are not withdrawn.
  RingsSeen rings() const;
  /// One ring. Throws NoSuchRing, as all that takes a ring's id.
  RingsSeen ring(std::uint32_t id) const;
  /// At most `limit` slots.
  StuckRing stuck_slots(std::uint32_t id, std::size_t limit) const;
  /// The children of a ring and their connections.
  std::vector<stage::SenderSnapshot> senders(std::uint32_t id) const;
  /// Copies in parts, with a stop for each. A connection that joins or leaves a ring between two
  /// parts may appear twice or not at all.
  std::vector<stage::ConnectionSnapshot> connections() const;
  /// The last ones of each port and ring, in the order of time.
  std::vector<conn::RefusedHello> refused_hellos() const;
  /// What decides whether rings are reclaimed. A part of the rings in each stop.
  TendedRings tended_rings() const;
  /// For control::Monitor. Stops the lcores even if there is no ring.
  Look look() const;

 private:
  stage::RingSnapshot snapshot_of(std::uint16_t ring, const lcore::Quiesce& quiesced) const;
  template <typename Visit>
  bool visit_in_parts(const std::shared_ptr<const ring::RingSet>& set, std::size_t at_once,
                      Visit&& visit) const;

  const Chassis& chassis_;
  const RingAdmin& rings_;
  const PortCounts& counts_;
  const Loops& loops_;
};

} // namespace weir::control
