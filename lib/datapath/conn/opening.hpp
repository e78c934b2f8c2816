// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/incarnation.hpp"
#include "frame/frame.hpp"
#include "ring/ring_set.hpp"
#include "weir/reasons.hpp"
#include "wire/headers.hpp"
#include "wire/message_shape.hpp"
#include "wire/packet.hpp"

#include <cstdint>
#include <optional>

namespace weir::conn {

/// A FIRST or ONLY whose INA header belongs to a ring.
struct Opening {
  frame::Frame& frame;
  const wire::InaHeader& ina;
  ring::RingChild sender;
  wire::MessageShape shape;
  std::uint32_t packets; // of the message
};

/// The INA header of a FIRST or ONLY that has one.
inline const wire::InaHeader& header_of(const frame::Frame& frame) {
  return wire::view_as<wire::InaHeader>(frame.payload());
}

/// A hello's session field has the nonce of its run.
inline Incarnation incarnation_named_by(const wire::InaHeader& hello) {
  return {hello.epoch.get(), hello.session.get()};
}

/// docs/protocol.md §3, "Belonging": why the header does not belong to a ring; nullopt if it does.
/// `sender` is then set to the child that sent it.
std::optional<ForeignReason> why_foreign(const ring::RingSet& rings, const frame::Frame& frame,
                                         const wire::InaHeader& ina, ring::RingChild& sender);

/// The message that `frame` starts. `sender` sent its header `ina`.
Opening opening_of(const ring::RingSet& rings, frame::Frame& frame, const wire::InaHeader& ina,
                   const ring::RingChild& sender);

/// docs/protocol.md §2: why a member's message cannot be aggregated, whatever the ring's state is.
/// nullopt when it can.
std::optional<DropReason> why_unacceptable(const ring::RingSpec& spec, const Opening& opening);

/// Whether packet `k` of a message of that shape and length has the right opcode position and
/// payload (IBTA §9.7.2: all packets but the last are full).
bool fits_message(const wire::Packet& packet, const wire::MessageShape& shape,
                  std::uint32_t packets, std::uint32_t k, std::uint16_t mtu);

} // namespace weir::conn
