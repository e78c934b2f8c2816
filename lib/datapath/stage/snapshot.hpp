// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Copies of the stages' state for reports: made on the lcore that owns the state, read anywhere.

#include "conn/incarnations.hpp"
#include "frame/counters.hpp"
#include "slot/slot_table.hpp"
#include "stage/worker.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::stage {

/// The frames of a ring group, or of a region, that wait for their turn at the worker.
struct LineSnapshot {
  std::uint64_t waiting = 0;
  LineCounters counters;
  std::uint64_t rate = 0; // the worker's part of the tenant's packets per second; 0: no limit

  /// But for the rate.
  LineSnapshot& operator+=(const LineSnapshot& other) {
    waiting += other.waiting;
    counters.waited += other.counters.waited;
    counters.queue_full += other.counters.queue_full;
    counters.over_rate += other.counters.over_rate;
    return *this;
  }
};

struct RingSnapshot {
  std::uint16_t ring = 0; // index in the set
  std::optional<conn::Incarnation> incarnation;
  frame::RingCounters counters;
  std::uint64_t held = 0;    // frames in slots
  std::uint32_t filling = 0; // slots
  std::size_t slots = 0;
  std::vector<conn::ChildStatus> children; // in order
  std::vector<std::uint16_t> unpinned;     // children whose MAC address is not pinned to their port
  std::vector<wire::OperatorEntry>
      ungranted;                           // operators of the incarnation that are not here for it
  std::vector<std::uint16_t> waited_for;   // who hold it up: children whose packets the oldest slot
                                           // lacks, or the parent
  std::uint64_t waiting_ns = 0;            // how long it has waited for them
  std::optional<conn::ChildStatus> parent; // of a ring with a switch above
  std::optional<std::uint64_t> total_missing_ns; // for how long the oldest sum that left has waited
                                                 // for the switch above; none: none does
  std::optional<std::uint64_t> climbing_ns;      // for how long all children's hellos have waited
  std::uint64_t waiting_since_ns = 0;            // since when, by the switch's clock
  std::optional<std::uint64_t> draining_ms;      // for how long it drains; none: it does not
  LineSnapshot line;                             // of its ring group, at its worker
  unsigned lcore = 0;                            // its worker's; for who knows it
};

struct ConnectionSnapshot {
  conn::Connection connection;
  std::optional<std::uint32_t> ring_id; // of live and dead ones, unless another ring has the index
  std::string sender;                   // of these, as ring::name_of() has it
  std::uint64_t idle_ms = 0;
};

/// A child's connection, or the parent's, for the question whom a ring waits for.
struct SenderSnapshot {
  std::uint16_t child = 0;
  conn::ChildStatus status;
  recovery::Flow flow;
};

/// What holds up a ring.
struct StuckSnapshot {
  frame::Instant now;
  std::vector<slot::StuckSlot> slots;     // those that have waited longest
  std::vector<SenderSnapshot> waited_for; // children whose packets or hellos are missing, in order
};

/// Protocol I6 as an equation: received + originated = forwarded + consumed + dropped + held +
/// queued.
struct Accounting {
  frame::FrameCounters frames;
  std::uint64_t held = 0;   // in slots
  std::uint64_t queued = 0; // between stages and in transmit backlogs

  std::uint64_t accounted() const {
    return frames.forwarded + frames.consumed + frames.all_dropped() + held + queued;
  }

  bool balances() const { return frames.received + frames.originated == accounted(); }
};

/// Packets lost between the switch and the hosts of one child, by direction.
struct LinkLosses {
  std::uint64_t from = 0; // its contributions
  std::uint64_t to = 0;   // results for it
};

/// As far as the switch knows: it has asked again, or has been asked.
LinkLosses losses_of(const RingSnapshot& ring, std::size_t child);
/// The same between the switch and the one above. The ring has one.
LinkLosses losses_above(const RingSnapshot& ring);

LineSnapshot snapshot_line(const FairQueue& lines, std::uint16_t line);

RingSnapshot snapshot_ring(const Worker& worker, std::uint16_t ring, frame::Instant now);
/// All children, in order, and the parent.
std::vector<SenderSnapshot> snapshot_senders(const Worker& worker, std::uint16_t ring);
/// Leaves the children that one of these slots waits for. Where no hello exchange is complete yet,
/// these are the ones whose hello is missing while others wait.
void keep_waited_for(std::vector<SenderSnapshot>& senders, std::span<const slot::StuckSlot> slots);
/// Appends the connections that are in this range of the worker's places().
void snapshot_connections(const Worker& worker, const ring::RingSet& set, conn::PlaceRange range,
                          frame::Instant now, std::vector<ConnectionSnapshot>& snapshot);

} // namespace weir::stage
