// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "packet.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::fabric {

/// Virtual nanoseconds since the run began.
using Time = std::uint64_t;
inline constexpr Time kNoTime = UINT64_MAX;

enum class EventKind : std::uint8_t {
  at_switch,    // packet
  at_port,      // packet, at the far end of port `place`
  timer,        // member
  application,  // member's application goes on
  start_member, // ring, rank, generation
  stop_member,  //
  start_epoch,  // ring
  fault_begins, // number `place`
  fault_ends,   //
  rogue,        // a stranger does something
  ghosts,       // ring: its hellos come once more
  stream,       // a plain stream sends its next frame
  helper,       // one of the switch's helpers makes a sum
};

struct Event {
  Time time = 0;
  std::uint64_t order = 0; // among events of one time: first come, first served
  EventKind kind{};
  std::uint16_t place = 0; // port, ring or number
  std::uint16_t rank = 0;
  std::uint32_t generation = 0;
  Packet* packet = nullptr;
};

class EventQueue {
 public:
  void push(Event event) {
    event.order = next_++;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), is_later);
  }

  bool empty() const { return heap_.empty(); }

  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool is_later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  std::vector<Event> heap_;
  std::uint64_t next_ = 0;
};

} // namespace weir::fabric
