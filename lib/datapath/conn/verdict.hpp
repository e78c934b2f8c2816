// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/message_history.hpp"
#include "recovery/flow.hpp"
#include "ring/ring.hpp"
#include "weir/reasons.hpp"

#include <cstdint>
#include <optional>

namespace weir::conn {

/// What the switch does with a RoCE packet between ring neighbours.
struct Verdict {
  enum class Step : std::uint8_t {
    forward,    // foreign, plain, or no request
    interleave, // plain, on a ring's connection: leaves in its turn or not at all
    repeat,     // its result has left already
    gap,        // its FIRST was lost: drop it, and ask its sender for it
    contribute, // goes to slot record->first_slot + packet of the ring
    total,      // the same, from the switch above
    wait,       // a hello; Incarnations keeps it
    climb,      // the same, the last one of its incarnation: tell the switch above
    begin,      // the last hello of its incarnation; call Incarnations::begin() next
    descend,    // the hello's result from above; call Incarnations::begin_below() next
    elsewhere,  // a hello of a ring that another worker has: hand it over
    refuse,     // a hello that its ring does not take: drop it
    drop,
  };
  Step step = Step::forward;
  DropReason drop{};                      // for refuse and drop
  std::optional<ForeignReason> foreign{}; // for forward: an INA header that belongs to no ring here
  std::uint16_t ring = 0;                 // for all but forward and drop
  std::uint16_t child = 0;                //
  MessageRecord* record = nullptr;        // for contribute and total
  std::uint32_t packet = 0;               // k, likewise
  recovery::Flow* flow = nullptr;         // likewise
};

inline Verdict forwarded() {
  return {.step = Verdict::Step::forward};
}

inline Verdict dropped(DropReason reason) {
  return {.step = Verdict::Step::drop, .drop = reason};
}

/// For a hello of this sender.
inline Verdict refused(const ring::RingChild& sender, DropReason reason) {
  return {
      .step = Verdict::Step::refuse, .drop = reason, .ring = sender.ring, .child = sender.child};
}

} // namespace weir::conn
