// SPDX-License-Identifier: BSD-3-Clause
#include "conn/opening.hpp"

#include "frame/frame.hpp"
#include "op/collectives.hpp"

#include <algorithm>

namespace weir::conn {

using wire::InaHeader;
using wire::MessageShape;
using wire::OperatorEntry;
using wire::OperatorTable;
using wire::Position;

namespace {

constexpr std::uint8_t kSumFlags = kInaFlagResult | kInaFlagPartial;
constexpr std::uint8_t kMaxAckTimeout = 31; // IBTA §11.2.5.1: five bits

Position position_of(std::uint32_t packets, std::uint32_t k) {
  if (packets == 1) {
    return Position::only;
  }
  if (k == 0) {
    return Position::first;
  }
  return k + 1 == packets ? Position::last : Position::middle;
}

std::uint64_t payload_of(const MessageShape& shape, std::uint32_t packets, std::uint32_t k,
                         std::uint16_t mtu) {
  return k + 1 < packets ? mtu : shape.message_bytes() - std::uint64_t{mtu} * (packets - 1);
}

bool lengths_agree(const Opening& opening, std::uint16_t mtu) {
  const wire::Packet& packet = opening.frame.packet;
  if (packet.opcode.has_reth != 0) {
    const auto& reth =
        wire::view_as<wire::Reth>(opening.frame.data + packet.bth_offset + sizeof(wire::Bth));
    if (reth.dma_length.get() !=
        opening.shape.message_bytes()) { // IBTA §9.3.1: length of the whole message
      return false;
    }
  }
  return fits_message(packet, opening.shape, opening.packets, 0, mtu);
}

bool is_reducible(const MessageShape& shape) {
  if (shape.is_by_operator()) {
    return shape.collective == Collective::all_reduce &&
           static_cast<std::uint8_t>(shape.operation) >= kFirstOperator;
  }
  return op::row_of(shape.collective).contributes == op::Who::everybody
             ? weir::is_reducible(shape.data_type, shape.operation)
             : element_size(shape.data_type) != 0;
}

/// Bytes that a message's data are a multiple of.
std::size_t unit_of(const MessageShape& shape) {
  return shape.is_by_operator() ? kOperatorUnit : element_size(shape.data_type);
}

/// A table of operators names each once. What a switch does not have is empty, never what a rank
/// says.
bool is_table(const OperatorTable& table, bool may_be_empty) {
  for (const OperatorEntry& entry : table.entries()) {
    if (entry.is_empty()) {
      if (!may_be_empty) {
        return false;
      }
      continue;
    }
    const auto alike = std::ranges::count(table.entries(), entry.number, &OperatorEntry::number);
    const bool is_padded = std::ranges::all_of(entry.reserved, [](auto byte) { return byte == 0; });
    if (entry.number < kFirstOperator || alike != 1 || !is_padded) {
      return false;
    }
  }
  return true;
}

/// Whether the data behind a hello's header are what they may be.
bool has_hello_data(const ring::Ring& ring, const Opening& opening) {
  return wire::may_be_table(opening.ina.version, opening.shape.data_bytes) &&
         is_table(table_of(opening.frame), !ring.is_rank(opening.sender.child));
}

bool has_fitting_root(const Opening& opening) {
  return op::row_of(opening.shape.collective).contributes == op::Who::root
             ? opening.shape.root < opening.ina.world.get()
             : opening.shape.root == 0;
}

/// Whether a switch below has the ring, and its own part of it, as this one has them.
std::optional<DropReason> why_differs(const ring::Ring& ring, const Opening& opening) {
  if (opening.ina.message_id.get() != ring.digest()) {
    return DropReason::ring_differs;
  }
  const ring::RankRange& ranks = ring.child(opening.sender.child).ranks;
  return opening.ina.root.get() == ranks.first ? std::nullopt
                                               : std::optional(DropReason::range_differs);
}

std::optional<DropReason> why_hello_unacceptable(const ring::Ring& ring, const Opening& opening) {
  const InaHeader& ina = opening.ina;
  const std::uint16_t sender = opening.sender.child;
  if (!has_hello_data(ring, opening) || (ring.is_rank(sender) && ina.message_id.get() != 0)) {
    return DropReason::bad_hello;
  }
  if (wire::nonce_of(ina) == 0) {
    return DropReason::bad_nonce;
  }
  if (ina.ack_timeout > kMaxAckTimeout) {
    return DropReason::bad_ack_timeout;
  }
  if (!ring.is_in_tree()) {
    return std::nullopt;
  }
  if (queue_pair_told_by(ina) == 0) {
    return DropReason::queue_pair_untold;
  }
  const bool is_switch_below = !ring.is_rank(sender) && !ring.is_parent(sender);
  return is_switch_below ? why_differs(ring, opening) : std::nullopt;
}

std::optional<DropReason> why_collective_unacceptable(const ring::Ring& ring,
                                                      const Opening& opening) {
  if (opening.ina.collective >= kCollectives) {
    return DropReason::unsupported_collective;
  }
  if (!is_reducible(opening.shape)) {
    return DropReason::unsupported_pair;
  }
  if (!has_fitting_root(opening)) {
    return DropReason::bad_root;
  }
  if (opening.shape.collective == Collective::hello) {
    return why_hello_unacceptable(ring, opening);
  }
  const bool may_have_data = op::row_of(opening.shape.collective).contributes != op::Who::nobody;
  return may_have_data || opening.shape.data_bytes == 0 ? std::nullopt
                                                        : std::optional(DropReason::barrier_data);
}

std::optional<DropReason> why_length_unacceptable(const ring::RingSpec& spec,
                                                  const Opening& opening) {
  if (opening.shape.message_bytes() > spec.max_message_bytes) {
    return DropReason::message_too_long;
  }
  if (opening.shape.data_bytes % unit_of(opening.shape) != 0) {
    return DropReason::partial_element;
  }
  return lengths_agree(opening, spec.mtu) ? std::nullopt
                                          : std::optional(DropReason::length_mismatch);
}

} // namespace

std::optional<DropReason> why_flags_unacceptable(const ring::Ring& ring, std::uint16_t sender,
                                                 std::uint8_t flags) {
  const std::uint8_t sum = flags & kSumFlags;
  if (ring.is_parent(sender)) {
    if (sum != kInaFlagResult) {
      return DropReason::raw_from_parent;
    }
  } else if ((sum & kInaFlagResult) != 0) {
    return DropReason::result_flag;
  } else if (ring.is_rank(sender) && sum != 0) {
    return DropReason::partial_flag;
  } else if (!ring.is_rank(sender) && sum == 0) {
    return DropReason::raw_from_switch;
  }
  return flags == sum ? std::nullopt : std::optional(DropReason::reserved_bits);
}

std::optional<ForeignReason> why_foreign(const ring::RingSet& rings, const frame::Frame& frame,
                                         const InaHeader& ina, ring::RingChild& sender) {
  if (!is_known_version(ina.version)) {
    return ForeignReason::unknown_version;
  }
  const auto found = rings.ring_with_id(ina.ring_id.get());
  if (!found) {
    return ForeignReason::unknown_ring;
  }
  const ring::Ring& ring = rings.rings()[*found];
  const std::uint16_t rank = ina.rank.get();
  if (ina.world.get() != ring.spec().world()) {
    return ForeignReason::world_mismatch;
  }
  if (rank >= ring.spec().world()) {
    return ForeignReason::rank_out_of_range;
  }
  const auto number = ring.sender_for(rank);
  if (!number) {
    return ForeignReason::rank_out_of_range;
  }
  sender = {*found, *number};
  if (ring.source_of(*number) != frame.source()) {
    return ForeignReason::source_mismatch;
  }
  if (ring.destination_of(*number) != frame.destination()) {
    return ForeignReason::destination_mismatch;
  }
  return std::nullopt;
}

MessageShape shape_of(const InaHeader& ina) {
  MessageShape shape = MessageShape::of(ina);
  if (shape.collective == Collective::hello && wire::is_partial(ina)) {
    shape.root = 0;
  }
  return shape;
}

Opening opening_of(const ring::RingSet& rings, frame::Frame& frame, const InaHeader& ina,
                   const ring::RingChild& sender) {
  const MessageShape shape = shape_of(ina);
  const std::uint16_t mtu = rings.rings()[sender.ring].spec().mtu;
  const auto packets = static_cast<std::uint32_t>((shape.message_bytes() + mtu - 1) / mtu);
  return {frame, ina, sender, shape, packets};
}

std::optional<DropReason> why_unacceptable(const ring::Ring& ring, const Opening& opening) {
  if (const auto reason = why_flags_unacceptable(ring, opening.sender.child, opening.ina.flags)) {
    return reason;
  }
  if (const auto reason = why_collective_unacceptable(ring, opening)) {
    return reason;
  }
  return why_length_unacceptable(ring.spec(), opening);
}

bool fits_message(const wire::Packet& packet, const MessageShape& shape, std::uint32_t packets,
                  std::uint32_t k, std::uint16_t mtu) {
  return packet.opcode.position == position_of(packets, k) &&
         packet.payload_bytes == payload_of(shape, packets, k, mtu);
}

} // namespace weir::conn
