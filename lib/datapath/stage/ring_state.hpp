// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "l2/bridge.hpp"
#include "recovery/answer_template.hpp"
#include "recovery/flow.hpp"
#include "recovery/result_template.hpp"
#include "ring/ring.hpp"
#include "slot/slot_table.hpp"
#include "stage/turns.hpp"

#include <cassert>
#include <memory_resource>
#include <optional>
#include <vector>

namespace weir::stage {

/// What a ring's slots are sized to.
slot::SlotTable::Dimensions dimensions_of(const ring::Ring& ring);

/// The packet whose results leave next. Results of a ring leave in the order of message and packet
/// (protocol I7).
struct Due {
  std::uint64_t message = 0;
  std::uint32_t packet = 0;
  std::uint32_t first_slot = 0; // the message's
  std::uint64_t since_ns = 0;   // when it became due

  std::uint32_t slot() const { return first_slot + packet; }
};

/// The oldest slot, when it waits for packets.
struct Stall {
  std::uint32_t slot = 0;
  std::uint64_t since_ns = 0;
};

/// Times one sum at a time on its way to the switch above and back as the total. Those that leave
/// meanwhile are not timed.
class SumTimer {
 public:
  void leaves(std::uint32_t slot, std::uint64_t now_ns) {
    if (!timed_) {
      timed_ = Stall{slot, now_ns};
    }
  }

  /// Nanoseconds since the sum left, if it is the timed one.
  std::optional<std::uint64_t> comes_back(std::uint32_t slot, std::uint64_t now_ns) {
    if (!timed_ || timed_->slot != slot) {
      return std::nullopt;
    }
    const std::uint64_t since_ns = timed_->since_ns;
    timed_.reset();
    return now_ns - since_ns;
  }

 private:
  std::optional<Stall> timed_;
};

/// A ring's state in the worker that owns it, except for its connections. Only one lcore uses it.
struct RingState {
  RingState(const ring::Ring& ring, std::pmr::memory_resource* memory);

  /// Set when some child's packet is missing in the due slot.
  std::optional<Stall> stall() const;

  /// The oldest slot that is not complete, if packets of it have come: what children wait for. On
  /// the root, or where there is one switch, that is the due slot.
  std::optional<Stall> unfinished() const;

  /// Set when the oldest unfinished slot's partial sum has left and the total has not come.
  std::optional<Stall> missing_total() const;

  /// What holds up the ring here: a child's packet, or else a total.
  std::optional<Stall> wait() const;

  /// Who owes what holds up the ring: children, or the parent.
  std::vector<std::uint16_t> late_senders() const;

  /// Whether the results of the due packet can leave.
  bool is_due_ready() const { return slots.is_ready(due.slot(), due.message); }

  /// Whether the total of the packet whose total is due can leave.
  bool is_total_due_known() const { return slots.is_known(total_due.slot(), total_due.message); }

  /// What of the due packet leaves is of this kind.
  void advance(Due& leaving, const wire::OpcodeInfo& kind, std::uint64_t now_ns) const;

  /// Whether what leaves on such a connection for the message has left, and is in the cache.
  bool has_left(ring::Leg leg, std::uint32_t slot, std::uint64_t message) const {
    return leg == ring::Leg::outgoing ? slots.has_sent(slot, message)
                                      : slots.is_complete(slot, message);
  }

  /// That, from the cache.
  slot::SlotResult cached_sum(ring::Leg leg, std::uint32_t slot) const {
    return leg == ring::Leg::outgoing ? slots.partial_of(slot) : slots.result_of(slot);
  }

  /// A packet leaves on a connection of the ring for the first time. If its sender left out PSNs
  /// before it, they are missing no longer.
  void leaves(recovery::Flow& flow, std::uint32_t psn, std::uint64_t now_ns) {
    if (flow.left(psn, now_ns)) [[unlikely]] {
      assert(gaps != 0);
      --gaps;
    }
  }

  slot::SlotTable slots;
  frame::RingCounters counters;
  std::vector<std::optional<l2::Pin>> pins; // by child, of the incarnation
  bool is_root;
  std::uint16_t made_results; // of a reduction: as many as children; none on a switch with a parent
  Due due;                    // results, or the partial sums of a switch with a parent
  Due total_due;              // of a switch with a parent
  SumTimer sum_timer;         // the same; of the incarnation
  std::uint32_t packets_per_message;             // L
  std::uint32_t gaps = 0;                        // connections on which a packet is missing
  std::uint64_t news_at_ns = 0;                  // when a child last brought a new packet
  std::uint64_t heard_at_ns = 0;                 // when one last acknowledged, or the ring was made
  std::vector<recovery::AnswerTemplate> answers; // by sender: to it
  std::vector<recovery::ResultTemplate> results; // by sender: to its receiver
  Turns resending;                               // senders to whose receivers results leave again
};

/// By index in the set of rings; empty where another worker owns the ring.
using RingStates = std::vector<std::optional<RingState>>;

} // namespace weir::stage
