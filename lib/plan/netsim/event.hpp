// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/event_queue.hpp"

#include <cstdint>

namespace weir::netsim {

enum class EventKind : std::uint16_t {
  packet_at_link, // subject: packet; detail: the FIFO that it enters, if any
  source_ready,   // subject: source
  link_free,      // subject: link; detail: the FIFO that it has served
  credit,         // subject: link and virtual channel; detail: bytes
  message_there,  // subject: message
  reduced,        // subject: message
  step_over,      // subject: node
  handed_over,    // subject: node. A channel has as much of a message as it can hold
};

struct Event {
  EventKind kind{};
  std::uint32_t subject = 0;
  std::uint32_t detail = 0;
};

using Events = EventQueue<Event>;

} // namespace weir::netsim
