// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/incarnation.hpp"
#include "frame/frame.hpp"
#include "ring/ring_set.hpp"
#include "weir/reasons.hpp"
#include "wire/headers.hpp"
#include "wire/message_shape.hpp"
#include "wire/operator_table.hpp"
#include "wire/packet.hpp"
#include "wire/sum_stamp.hpp"

#include <cstdint>
#include <optional>
#include <span>

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

/// A child's hello has the nonce of its run as session, whatever its flags say.
inline Incarnation incarnation_named_by(const wire::InaHeader& hello) {
  return {hello.epoch.get(), hello.session.get()};
}

/// A hello's result has the nonce as message id.
inline Incarnation incarnation_begun_by(const wire::InaHeader& result) {
  return {result.epoch.get(), result.message_id.get()};
}

/// 0 when the hello tells none, or none that exists: numbers have 24 bits (IBTA §9.2).
inline std::uint32_t queue_pair_told_by(const wire::InaHeader& hello) {
  constexpr std::uint32_t most = 0xffffff;
  return hello.qp.get() <= most ? hello.qp.get() : 0;
}

/// The message id in the ring's sequence: a hello, whose field may say something else, is the first
/// one.
inline std::uint32_t message_id_of(const wire::InaHeader& ina) {
  return ina.collective == static_cast<std::uint8_t>(Collective::hello) ? 0 : ina.message_id.get();
}

/// The operators that a hello names (docs/protocol.md §12). Its packet may be of any length.
inline wire::OperatorTable table_of(const frame::Frame& hello) {
  return wire::OperatorTable(
      std::span(hello.payload(), hello.packet.payload_bytes).subspan(sizeof(wire::InaHeader)));
}

/// What all senders' headers of the message say alike. The root in a hello from a switch below is
/// no broadcast's.
wire::MessageShape shape_of(const wire::InaHeader& ina);

/// docs/protocol.md §3, "Belonging": why the header does not belong to a ring; nullopt if it does.
/// `sender` is then set to the child that sent it.
std::optional<ForeignReason> why_foreign(const ring::RingSet& rings, const frame::Frame& frame,
                                         const wire::InaHeader& ina, ring::RingChild& sender);

/// The message that `frame` starts. `sender` sent its header `ina`.
Opening opening_of(const ring::RingSet& rings, frame::Frame& frame, const wire::InaHeader& ina,
                   const ring::RingChild& sender);

/// docs/protocol.md §11.4: why this sender's header may not have these flags. A rank sends its own
/// data, a switch below a partial sum, and the one above a total. All else would be added up, or
/// read, as what it is not.
std::optional<DropReason> why_flags_unacceptable(const ring::Ring& ring, std::uint16_t sender,
                                                 std::uint8_t flags);

/// docs/protocol.md §2, §11.4: why a message of the ring cannot be aggregated, whatever the ring's
/// state is. nullopt when it can.
std::optional<DropReason> why_unacceptable(const ring::Ring& ring, const Opening& opening);

/// Whether packet `k` of a message of that shape and length has the right opcode position and
/// payload (IBTA §9.7.2: all packets but the last are full).
bool fits_message(const wire::Packet& packet, const wire::MessageShape& shape,
                  std::uint32_t packets, std::uint32_t k, std::uint16_t mtu);

} // namespace weir::conn
