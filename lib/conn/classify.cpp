// SPDX-License-Identifier: BSD-3-Clause
#include "conn/classify.hpp"

#include "wire/icrc.hpp"
#include "wire/parse.hpp"

namespace weir::conn {

using wire::Frame;
using wire::InaHeader;
using wire::MessageShape;
using wire::Position;

namespace {

using Step = Verdict::Step;

Verdict dropped(DropReason reason) {
  return {.step = Step::drop, .drop = reason};
}

DropReason reason_for(wire::Defect defect) {
  switch (defect) {
  case wire::Defect::fragment:
    return DropReason::fragment;
  case wire::Defect::ipv6_extension:
    return DropReason::ipv6_extension;
  case wire::Defect::transport_version:
    return DropReason::transport_version;
  default:
    return DropReason::length_mismatch;
  }
}

std::uint32_t packets_of(const MessageShape& shape, std::uint16_t mtu) {
  return static_cast<std::uint32_t>((shape.message_bytes() + mtu - 1) / mtu);
}

/// Payload bytes of packet k of a message (IBTA §9.7.2: all but the last are full).
std::uint64_t payload_of(const MessageShape& shape, std::uint32_t packets, std::uint32_t k,
                         std::uint16_t mtu) {
  return k + 1 < packets ? mtu : shape.message_bytes() - std::uint64_t{mtu} * (packets - 1);
}

Position position_of(std::uint32_t packets, std::uint32_t k) {
  if (packets == 1) {
    return Position::only;
  }
  if (k == 0) {
    return Position::first;
  }
  return k + 1 == packets ? Position::last : Position::middle;
}

bool has_reserved_bits(const InaHeader& ina) {
  return (ina.flags & ~kInaFlagResult) != 0;
}

bool hello_is_well_formed(const InaHeader& ina) {
  return ina.message_id.get() == 0 && ina.message_length.get() == 0 && ina.session.get() == 0;
}

bool lengths_agree(const Frame& frame, const MessageShape& shape, std::uint32_t packets,
                   std::uint16_t mtu) {
  const wire::Packet& packet = frame.packet;
  if (packet.opcode.has_reth != 0) {
    const auto& reth =
        wire::view_as<wire::Reth>(frame.data + packet.bth_offset + sizeof(wire::Bth));
    if (reth.dma_length.get() !=
        shape.message_bytes()) { // IBTA §9.3.1: length of the whole message
      return false;
    }
  }
  return packet.opcode.position == position_of(packets, 0) &&
         packet.payload_bytes == payload_of(shape, packets, 0, mtu);
}

std::uint32_t table_capacity(const RingDirectory& directory,
                             const std::vector<std::uint16_t>& rings, std::uint32_t plain_entries) {
  std::uint32_t capacity = plain_entries;
  for (const std::uint16_t ring : rings) {
    // Twice: the living and, after a flush, the dead that still send.
    capacity += 2u * directory.rings()[ring].world();
  }
  return capacity;
}

} // namespace

Classifier::Classifier(const RingDirectory& directory, const std::vector<std::uint16_t>& rings,
                       const Settings& settings)
    : directory_(directory), session_(settings.session),
      connections_(table_capacity(directory, rings, settings.plain_entries), settings.aging),
      rings_(directory.rings().size()) {
  for (const std::uint16_t ring : rings) {
    const RingSpec& spec = directory.rings()[ring];
    RingState& state = rings_[ring].emplace();
    state.records.resize(std::size_t{spec.world()} * spec.depth());
    state.members.resize(spec.world());
    for (std::uint16_t rank = 0; rank < spec.world(); ++rank) {
      const std::span records(state.records.data() + std::size_t{rank} * spec.depth(),
                              spec.depth());
      state.histories.emplace_back(records, spec.packets_per_message());
    }
  }
}

Verdict Classifier::classify(Frame& frame, std::uint64_t now) {
  if (frame.packet.parsed == wire::Parsed::malformed) {
    return dropped(reason_for(frame.packet.defect));
  }
  return frame.packet.opcode.starts_message() ? start_of_message(frame, now)
                                              : inside_message(frame, now);
}

/// Whatever a FIRST or ONLY says changes state, so nothing of it is believed before its ICRC is
/// verified.
Verdict Classifier::start_of_message(Frame& frame, std::uint64_t now) {
  if (!wire::verify_icrc(frame)) {
    return dropped(DropReason::bad_icrc);
  }
  const InaHeader* ina = wire::find_ina_header(frame);
  if (ina == nullptr) {
    return plain_start(frame, now);
  }
  std::uint16_t ring = 0;
  if (const auto foreign = why_foreign(frame, *ina, ring)) {
    // From a port that is not the member's it says nothing of the member's queue pair.
    Verdict verdict = *foreign == ForeignReason::port_mismatch ? Verdict{.step = Step::forward}
                                                               : plain_start(frame, now);
    verdict.foreign = foreign;
    return verdict;
  }
  const MessageShape shape = MessageShape::of(*ina);
  const Opening opening{frame, *ina, ring, ina->rank.get(),
                        packets_of(shape, directory_.rings()[ring].mtu)};
  if (const auto reason = why_unacceptable(opening)) {
    return dropped(*reason);
  }
  return ring_start(opening, now);
}

Verdict Classifier::inside_message(const Frame& frame, std::uint64_t now) {
  Connection* connection = connections_.find(frame.pair, frame.packet.destination_qp, now);
  if (connection == nullptr) {
    return dropped(DropReason::unclassified);
  }
  connection->count_packet(now);
  switch (connection->state) {
  case ConnectionState::plain:
    return {.step = Step::forward};
  case ConnectionState::dead:
    return dropped(DropReason::dead_connection);
  case ConnectionState::ring:
    break;
  }
  return inside_ring_message(frame, *connection);
}

Verdict Classifier::inside_ring_message(const Frame& frame, const Connection& connection) {
  const RingSpec& spec = directory_.rings()[connection.ring];
  const auto& port = spec.members[connection.rank].port;
  if (port && *port != frame.ingress) {
    return dropped(DropReason::wrong_port);
  }
  const auto located = rings_[connection.ring]->histories[connection.rank].locate(frame.packet.psn);
  switch (located.place) {
  case MessageHistory::Place::stale:
    return {.step = Step::forward_stale, .ring = connection.ring, .rank = connection.rank};
  case MessageHistory::Place::unknown:
    return dropped(DropReason::unknown_message);
  case MessageHistory::Place::inside:
    break;
  }
  const MessageRecord& record = *located.record;
  const bool fits = frame.packet.opcode.position == position_of(record.packets, located.packet) &&
                    frame.packet.payload_bytes ==
                        payload_of(record.shape, record.packets, located.packet, spec.mtu);
  if (!fits) {
    return dropped(DropReason::length_mismatch);
  }
  return {.step = Step::contribute,
          .ring = connection.ring,
          .rank = connection.rank,
          .record = located.record,
          .packet = located.packet};
}

/// A message that no ring here claims. On a live ring connection it passes but changes nothing:
/// were the connection called plain, repeats of the ring's own packets would be forwarded raw.
Verdict Classifier::plain_start(const Frame& frame, std::uint64_t now) {
  Connection* connection =
      connections_.find_or_insert(frame.pair, frame.packet.destination_qp, now);
  if (connection == nullptr) {
    return dropped(DropReason::connection_table_full);
  }
  connection->count_packet(now);
  if (connection->state == ConnectionState::dead) {
    connection->state = ConnectionState::plain;
  }
  return {.step = Step::forward};
}

/// docs/protocol.md §3: the tests that make a header "somebody else's"; nullopt when it belongs,
/// `ring` then says where.
std::optional<ForeignReason> Classifier::why_foreign(const Frame& frame, const InaHeader& ina,
                                                     std::uint16_t& ring) const {
  if (ina.version != kInaVersion) {
    return ForeignReason::unknown_version;
  }
  const auto found = directory_.ring_with_id(ina.ring_id.get());
  if (!found) {
    return ForeignReason::unknown_ring;
  }
  ring = *found;
  const RingSpec& spec = directory_.rings()[ring];
  const std::uint16_t rank = ina.rank.get();
  if (ina.world.get() != spec.world()) {
    return ForeignReason::world_mismatch;
  }
  if (rank >= spec.world()) {
    return ForeignReason::rank_out_of_range;
  }
  const Member& member = spec.members[rank];
  if (member.ip != frame.packet.source) {
    return ForeignReason::source_mismatch;
  }
  if (spec.members[spec.successor(rank)].ip != frame.packet.destination) {
    return ForeignReason::destination_mismatch;
  }
  if (member.port && *member.port != frame.ingress) {
    return ForeignReason::port_mismatch;
  }
  return std::nullopt;
}

/// What makes a member's message impossible to aggregate, whatever the connection's state.
std::optional<DropReason> Classifier::why_unacceptable(const Opening& opening) const {
  const InaHeader& ina = opening.ina;
  const RingSpec& spec = directory_.rings()[opening.ring];
  const MessageShape shape = MessageShape::of(ina);
  if ((ina.flags & kInaFlagResult) != 0) {
    return DropReason::result_flag;
  }
  if (has_reserved_bits(ina)) {
    return DropReason::reserved_bits;
  }
  if (shape.collective != Collective::hello && shape.collective != Collective::all_reduce) {
    return DropReason::unsupported_collective;
  }
  if (!is_reducible(shape.data_type, shape.operation)) {
    return DropReason::unsupported_pair;
  }
  if (shape.collective == Collective::hello && !hello_is_well_formed(ina)) {
    return DropReason::bad_hello;
  }
  if (shape.collective != Collective::hello && ina.session.get() != session_) {
    return DropReason::wrong_session;
  }
  if (shape.message_bytes() > spec.max_message_bytes) {
    return DropReason::message_too_long;
  }
  if (shape.data_bytes % element_size(shape.data_type) != 0) {
    return DropReason::partial_element;
  }
  if (!lengths_agree(opening.frame, shape, opening.packets, spec.mtu)) {
    return DropReason::length_mismatch;
  }
  return std::nullopt;
}

/// docs/protocol.md §4, "Epochs", then the connection.
Verdict Classifier::ring_start(const Opening& opening, std::uint64_t now) {
  RingState& state = *rings_[opening.ring];
  const std::uint32_t epoch = opening.ina.epoch.get();
  if (state.epoch && (epoch < *state.epoch || (state.closed && epoch == *state.epoch))) {
    return dropped(DropReason::old_epoch);
  }
  const bool begins_epoch = !state.epoch || epoch > *state.epoch;
  if (begins_epoch) {
    disconnect(state);
    state.epoch = epoch;
    state.closed = false;
  }
  const bool is_hello = opening.ina.collective == static_cast<std::uint8_t>(Collective::hello);
  Verdict verdict = is_hello ? hello(opening, now) : data_start(opening, now);
  if (begins_epoch) {
    verdict.flushed_ring = opening.ring;
  }
  return verdict;
}

Verdict Classifier::hello(const Opening& opening, std::uint64_t now) {
  const Frame& frame = opening.frame;
  Connection* connection =
      connections_.find_or_insert(frame.pair, frame.packet.destination_qp, now);
  if (connection == nullptr) {
    return dropped(DropReason::connection_table_full);
  }
  connection->count_packet(now);
  if (is_admitted(connection, opening)) {
    return enter_history(opening);
  }
  const bool was_superseded = connection->state == ConnectionState::dead &&
                              connection->ring == opening.ring &&
                              connection->epoch == opening.ina.epoch.get();
  if (was_superseded) { // a late copy must not take the rank back from its newer connection
    return dropped(DropReason::dead_connection);
  }
  if (connection->state ==
      ConnectionState::ring) { // another ring's, or another rank's: that one is over
    rings_[connection->ring]->members[connection->rank] = nullptr;
  }
  admit(*connection, opening);
  const MessageRecord& record = rings_[opening.ring]->histories[opening.rank].begin(
      frame.packet.psn, MessageShape::of(opening.ina));
  return {.step = Step::contribute, .ring = opening.ring, .rank = opening.rank, .record = &record};
}

Verdict Classifier::data_start(const Opening& opening, std::uint64_t now) {
  const Frame& frame = opening.frame;
  Connection* connection = connections_.find(frame.pair, frame.packet.destination_qp, now);
  if (!is_admitted(connection, opening)) {
    return dropped(DropReason::no_connection);
  }
  connection->count_packet(now);
  return enter_history(opening);
}

Verdict Classifier::enter_history(const Opening& opening) {
  const auto entered = rings_[opening.ring]->histories[opening.rank].enter(
      opening.ina.message_id.get(), opening.frame.packet.psn, opening.packets,
      MessageShape::of(opening.ina));
  switch (entered.entry) {
  case MessageHistory::Entry::stale:
    return {.step = Step::forward_stale, .ring = opening.ring, .rank = opening.rank};
  case MessageHistory::Entry::too_far:
    return dropped(DropReason::window_exceeded);
  case MessageHistory::Entry::conflict:
    return dropped(DropReason::history_conflict);
  case MessageHistory::Entry::entered:
  case MessageHistory::Entry::repeat:
    break;
  }
  return {.step = Step::contribute,
          .ring = opening.ring,
          .rank = opening.rank,
          .record = entered.record};
}

bool Classifier::is_admitted(const Connection* connection, const Opening& opening) const {
  return connection != nullptr && connection->state == ConnectionState::ring &&
         connection->ring == opening.ring && connection->rank == opening.rank;
}

void Classifier::admit(Connection& connection, const Opening& opening) {
  RingState& state = *rings_[opening.ring];
  Connection*& member = state.members[opening.rank];
  if (member != nullptr) {
    member->state = ConnectionState::dead;
  }
  member = &connection;
  connection.state = ConnectionState::ring;
  connection.ring = opening.ring;
  connection.rank = opening.rank;
  connection.epoch = opening.ina.epoch.get();
}

void Classifier::disconnect(RingState& state) {
  for (Connection*& member : state.members) {
    if (member != nullptr) {
      member->state = ConnectionState::dead;
      member = nullptr;
    }
  }
}

void Classifier::reset(std::uint16_t ring) {
  RingState& state = *rings_[ring];
  disconnect(state);
  state.closed = state.epoch.has_value();
}

std::optional<std::uint32_t> Classifier::epoch_of(std::uint16_t ring) const {
  return rings_[ring]->epoch;
}

MemberStatus Classifier::status_of(std::uint16_t ring, std::uint16_t rank) const {
  const RingState& state = *rings_[ring];
  const Connection* member = state.members[rank];
  if (member == nullptr) {
    return {};
  }
  return {true, member->qp, state.histories[rank].newest(), member->packets};
}

} // namespace weir::conn
