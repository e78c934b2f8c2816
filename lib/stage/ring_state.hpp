// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "l2/bridge.hpp"
#include "recovery/answer_template.hpp"
#include "recovery/result_template.hpp"
#include "ring/ring.hpp"
#include "slot/slot_table.hpp"

#include <memory_resource>
#include <optional>
#include <vector>

namespace weir::stage {

/// What a ring's slots are sized to.
slot::SlotTable::Dimensions dimensions_of(const ring::Ring& ring);

/// Bytes of the headers that a ring keeps to send results again.
std::size_t kept_header_bytes(const ring::Ring& ring);

/// The packet whose results leave next. Results of a ring leave in the order of message and packet
/// (protocol I7).
struct Due {
  std::uint64_t message = 0;
  std::uint32_t packet = 0;
  std::uint64_t since_ns = 0; // when it became due
};

/// A ring's state in the worker that owns it, except for its connections. Only one lcore uses it.
struct RingState {
  RingState(const ring::Ring& ring, std::pmr::memory_resource* memory);

  std::uint32_t slot_of(const Due& packet) const {
    return static_cast<std::uint32_t>(packet.message % messages) * packets_per_message +
           packet.packet;
  }

  std::uint32_t due_slot() const { return slot_of(due); }

  /// Those of a child's message, which is one of the last 2N.
  recovery::MessageHeaders& headers_of(std::uint16_t child, std::uint64_t message) {
    return headers[std::size_t{child} * messages + message % messages];
  }

  slot::SlotTable slots;
  frame::RingCounters counters;
  std::vector<l2::Pin> pins; // of the incarnation's children
  Due due;
  std::uint32_t messages;                             // 2N
  std::uint32_t packets_per_message;                  // L
  std::uint32_t gaps = 0;                             // connections on which a packet is missing
  std::uint64_t news_at_ns = 0;                       // when a child last brought a new packet
  std::vector<recovery::AnswerTemplate> answers;      // by child: to its sender
  std::vector<recovery::ResultTemplate> results;      // by child: to its receiver
  std::pmr::vector<recovery::MessageHeaders> headers; // child x message
};

/// By index in the set of rings; empty where another worker owns the ring.
using RingStates = std::vector<std::optional<RingState>>;

} // namespace weir::stage
