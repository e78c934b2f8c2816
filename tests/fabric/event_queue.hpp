// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/event_queue.hpp"
#include "network/time.hpp"
#include "packet.hpp"

#include <cstdint>

namespace weir::fabric {

using network::kMillisecond;
using network::kNoTime;
using network::Time;

enum class EventKind : std::uint8_t {
  at_switch,    // packet, at `place`
  at_port,      // packet, at the far end of `place`
  timer,        // member
  application,  // a member's application continues
  start_member, // ring, rank, generation
  stop_member,  //
  start_epoch,  // ring
  fault_begins, // number `place`
  fault_ends,   //
  rogue,        // a stranger acts
  rogue_asks,   // a switch that lies asks another once more
  ghosts,       // ring: its hellos come once more
  stream,       // a plain stream sends its next frame
  look,         // switch `place` looks at its timers
  helper,       // one of switch `place`'s helpers makes a reduction
  handover,     // switch `place`'s workers look at their hand-off rings
};

struct Event {
  Time time = 0;
  EventKind kind{};
  std::uint16_t place = 0; // of a scenario; or ring, switch or number
  std::uint16_t rank = 0;
  std::uint32_t generation = 0;
  Packet* packet = nullptr;
};

/// Events of equal time come out in the order of pushing.
class EventQueue {
 public:
  void push(const Event& event) { queue_.push(event.time, event); }

  bool empty() const { return queue_.empty(); }

  Event pop() { return queue_.pop().event; }

 private:
  netsim::EventQueue<Event> queue_;
};

} // namespace weir::fabric
