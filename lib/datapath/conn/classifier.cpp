// SPDX-License-Identifier: BSD-3-Clause
#include "conn/classifier.hpp"

#include "frame/frame.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

#include <utility>

namespace weir::conn {

using frame::Frame;
using wire::InaHeader;
using wire::Opcode;
using wire::Position;

namespace {

using Step = Verdict::Step;

Opcode opcode_of(const Frame& frame) {
  return static_cast<Opcode>(wire::view_as<wire::Bth>(frame.data + frame.packet.bth_offset).opcode);
}

/// True when the packet came by another port than its connection's hello. Where several rings share
/// two neighbours, the pair may be bound to the ports of all of them.
bool is_from_elsewhere(const Connection& connection, const Frame& frame) {
  return connection.state == ConnectionState::live && connection.port != frame.ingress;
}

bool is_admitted(const Connection* connection, const Opening& opening) {
  return connection != nullptr && connection->state == ConnectionState::live &&
         connection->ring == opening.sender.ring && connection->child == opening.sender.child;
}

} // namespace

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

Classifier::Classifier(const ring::CurrentRings& current, Incarnations& incarnations,
                       const Settings& settings, IsHeld is_held)
    : current_(current), incarnations_(incarnations), foreign_sessions_(*settings.foreign_sessions),
      magic_rule_(magic_rule_settings(settings)), is_held_(std::move(is_held)) {}

Verdict Classifier::classify(Frame& frame, std::uint64_t now) {
  if (!incarnations_.ports().may_enter(frame.pair, frame.ingress) && !greets_unbound_ring(frame)) {
    return dropped(DropReason::wrong_port);
  }
  if (!current_->carries_messages(frame.pair)) {
    const auto reason = magic_rule_.why_not_forwarded(frame, now);
    return reason ? dropped(*reason) : forwarded();
  }
  switch (frame.packet.parsed) {
  case wire::Parsed::malformed:
    return dropped(reason_for(frame.packet.defect));
  case wire::Parsed::message:
    return frame.packet.opcode.starts_message() ? start_of_message(frame, now)
                                                : inside_message(frame, now);
  default:
    return frame.packet.opcode.position == Position::request ? other_request(frame, now)
                                                             : forwarded();
  }
}

/// True for a hello of a ring that has no port for this member yet, or that another worker has,
/// which asks then. Two rings may share two
/// neighbours; what one ring's hellos said of a port must not keep the other ring from forming.
bool Classifier::greets_unbound_ring(const Frame& frame) const {
  const InaHeader* ina = wire::find_ina_header(frame);
  ring::RingChild sender;
  return ina != nullptr && wire::is_hello(frame, *ina) &&
         !why_foreign(*current_, frame, *ina, sender) &&
         (!incarnations_.has(sender.ring) || !incarnations_.ports().port_of(sender));
}

/// The packet's connection; nullptr when the switch has none. `epoch` is from the packet's INA
/// header, if it has one.
Connection* Classifier::look_up(Frame& frame, const std::optional<std::uint32_t>& epoch,
                                std::uint64_t now) {
  const QueuePair name = queue_pair_of(frame);
  Connection* connection = incarnations_.connections().find_ring(name, now);
  if (connection != nullptr && connection->hellos != 0) [[unlikely]] {
    incarnations_.give_up_overtaken(frame, epoch);
    connection = incarnations_.connections().find_ring(name, now);
  }
  const bool is_ring = connection != nullptr && connection->state != ConnectionState::unclassified;
  return is_ring ? connection : incarnations_.connections().find_stranger(name, frame.ingress, now);
}

/// READ, atomics, SEND with Invalidate and the like. On a ring's connection, a SEND_LAST with
/// Invalidate could end a message whose FIRST was a result.
Verdict Classifier::other_request(Frame& frame, std::uint64_t now) {
  Connection* connection = look_up(frame, std::nullopt, now);
  if (connection != nullptr && is_from_elsewhere(*connection, frame)) {
    return dropped(DropReason::wrong_port);
  }
  if (connection != nullptr) {
    connection->count_packet(now);
  }
  switch (connection == nullptr ? ConnectionState::unclassified : connection->state) {
  case ConnectionState::live:
    return dropped(DropReason::unsupported_request);
  case ConnectionState::dead:
    return dropped(DropReason::dead_connection);
  case ConnectionState::announced:
  case ConnectionState::barred:
    return dropped(DropReason::unannounced);
  case ConnectionState::plain:
  case ConnectionState::foreign:
    return forwarded();
  case ConnectionState::unclassified:
    break;
  }
  return opcode_of(frame) == Opcode::send_last_invalidate ? dropped(DropReason::unclassified)
                                                          : forwarded();
}

/// A FIRST or ONLY changes state, so nothing of it is used before its ICRC is verified.
Verdict Classifier::start_of_message(Frame& frame, std::uint64_t now) {
  if (!wire::verify_icrc(frame)) {
    return dropped(DropReason::bad_icrc);
  }
  const InaHeader* ina = wire::find_ina_header(frame);
  const auto epoch = ina == nullptr ? std::nullopt : std::optional(ina->epoch.get());
  Connection* connection = look_up(frame, epoch, now);
  if (connection != nullptr && is_from_elsewhere(*connection, frame)) {
    return dropped(DropReason::wrong_port);
  }
  if (ina == nullptr) {
    return plain_start(frame, connection, now);
  }
  if (connection != nullptr && connection->state == ConnectionState::plain) {
    connection->state = ConnectionState::barred;
  }
  if (const auto repeat = repeated_start(frame, *ina, connection, now)) {
    return *repeat;
  }
  ring::RingChild sender;
  if (const auto reason = why_foreign(*current_, frame, *ina, sender)) {
    return foreign_start(frame, *reason, connection, now);
  }
  if (connection != nullptr && connection->state == ConnectionState::dead) {
    connection->last_seen = now; // its requester is alive, whatever happens to the message
  }
  if (!incarnations_.has(sender.ring)) [[unlikely]] {
    return start_elsewhere(frame, sender);
  }
  const Opening opening = opening_of(*current_, frame, *ina, sender);
  if (incarnations_.ports().port_of(sender).value_or(frame.ingress) != frame.ingress) {
    return dropped(DropReason::wrong_port);
  }
  const ring::Ring& ring = current_->rings()[sender.ring];
  if (const auto reason = why_unacceptable(ring, opening)) {
    return ring.is_in_tree() ? refused(sender, *reason) : dropped(*reason);
  }
  if (opening.shape.collective != Collective::hello) {
    return data_start(opening, connection, now);
  }
  return ring.is_parent(sender.child) ? hello_from_above(opening, connection, now)
                                      : hello(opening, connection, now);
}

/// Of a ring that another worker has. Its messages come here only on connections that it has not
/// admitted.
Verdict Classifier::start_elsewhere(const Frame& frame, const ring::RingChild& sender) {
  return wire::is_hello(frame, header_of(frame))
             ? Verdict{.step = Step::elsewhere, .ring = sender.ring, .child = sender.child}
             : dropped(DropReason::no_connection);
}

/// A FIRST or ONLY whose result has left. Of its header only the session counts: with in-place
/// buffers a result may have overwritten the rest. nullopt for any other packet.
std::optional<Verdict> Classifier::repeated_start(const Frame& frame, const InaHeader& ina,
                                                  Connection* connection, std::uint64_t now) {
  if (connection == nullptr || connection->state != ConnectionState::live) {
    return std::nullopt;
  }
  const ring::RingChild sender{connection->ring, connection->child};
  if (!incarnations_.flow_of(sender).is_past(frame.packet.psn) ||
      !incarnations_.may_answer(sender)) {
    return std::nullopt;
  }
  const ring::Ring& ring = current_->rings()[sender.ring];
  if (!ring.is_rank(sender.child)) { // what it repeats comes from its cache
    if (const auto reason = why_flags_unacceptable(ring, sender.child, ina.flags)) {
      return refused(sender, *reason);
    }
  }
  const bool is_hello = wire::is_hello(frame, ina);
  const bool has_session = ina.session.get() == incarnations_.session_from(sender);
  const auto& running = incarnations_.incarnation_of(sender.ring);
  const bool is_of_incarnation =
      ring.is_parent(sender.child)
          ? has_session && (!is_hello || running == incarnation_begun_by(ina))
          : has_session || (is_hello && running == incarnation_named_by(ina));
  if (!is_of_incarnation) {
    return is_hello ? std::nullopt : std::optional(dropped(DropReason::wrong_session));
  }
  connection->count_packet(now);
  return Verdict{.step = Step::repeat, .ring = sender.ring, .child = sender.child};
}

Verdict Classifier::inside_message(Frame& frame, std::uint64_t now) {
  Connection* connection = look_up(frame, std::nullopt, now);
  if (connection == nullptr) {
    return dropped(DropReason::unclassified);
  }
  if (is_from_elsewhere(*connection, frame)) {
    return dropped(DropReason::wrong_port);
  }
  connection->count_packet(now);
  switch (connection->state) {
  case ConnectionState::live:
    return inside_ring_message(frame, *connection);
  case ConnectionState::plain:
  case ConnectionState::foreign:
    return forwarded();
  case ConnectionState::dead:
    return dropped(DropReason::dead_connection);
  case ConnectionState::announced:
  case ConnectionState::barred:
    return dropped(DropReason::unannounced);
  case ConnectionState::unclassified:
    break;
  }
  return dropped(DropReason::unclassified);
}

Verdict Classifier::inside_ring_message(const Frame& frame, const Connection& connection) {
  const ring::RingChild sender{connection.ring, connection.child};
  recovery::Flow& flow = incarnations_.flow_of(sender);
  if (flow.is_past(frame.packet.psn) && incarnations_.may_answer(sender)) [[unlikely]] {
    return {.step = Step::repeat, .ring = sender.ring, .child = sender.child};
  }
  const auto located = incarnations_.history_of(sender).locate(frame.packet.psn);
  switch (located.place) {
  case MessageHistory::Place::stale:
    return dropped(DropReason::stale_repeat);
  case MessageHistory::Place::unknown:
    return {.step = Step::gap, .ring = sender.ring, .child = sender.child};
  case MessageHistory::Place::inside:
    break;
  }
  const MessageRecord& record = *located.record;
  const std::uint16_t mtu = current_->rings()[connection.ring].spec().mtu;
  if (!fits_message(frame.packet, record.shape, record.packets, located.packet, mtu)) {
    return dropped(DropReason::length_mismatch);
  }
  return contributed(sender, located.record, located.packet);
}

Verdict Classifier::contributed(const ring::RingChild& sender, MessageRecord* record,
                                std::uint32_t packet) {
  const bool is_parent = current_->rings()[sender.ring].is_parent(sender.child);
  return {.step = is_parent ? Step::total : Step::contribute,
          .ring = sender.ring,
          .child = sender.child,
          .record = record,
          .packet = packet,
          .flow = &incarnations_.flow_of(sender)};
}

/// A message without an INA header. On a live connection it changes nothing: on a plain
/// connection, repeats of the ring's own packets would be forwarded raw. But when the ring has not
/// used the queue pair for the aging time, the queue pair is taken for a new one.
Verdict Classifier::plain_start(const Frame& frame, Connection* connection, std::uint64_t now) {
  switch (connection == nullptr ? ConnectionState::unclassified : connection->state) {
  case ConnectionState::live: {
    const bool was_silent = connection->silence(now) > incarnations_.aging();
    if (!was_silent || is_held_({connection->ring, connection->child})) {
      connection->count_packet(now);
      return {.step = Step::interleave, .ring = connection->ring, .child = connection->child};
    }
    incarnations_.leave_ring(*connection);
    incarnations_.forget_ring_of(*connection);
    break;
  }
  case ConnectionState::dead:
    if (connection->port != frame.ingress) {
      return dropped(DropReason::wrong_port);
    }
    incarnations_.forget_ring_of(*connection);
    break;
  default:
    break;
  }
  incarnations_.connections()
      .put_stranger(queue_pair_of(frame), frame.ingress, ConnectionState::plain, now)
      .count_packet(now);
  return forwarded();
}

/// docs/protocol.md §3, "The magic". A header that belongs to no ring may come from a withdrawn
/// ring, whose receivers still wait for the rest of a message.
Verdict Classifier::foreign_start(const Frame& frame, ForeignReason reason, Connection* connection,
                                  std::uint64_t now) {
  if (connection != nullptr) {
    connection->count_packet(now);
  }
  if (is_partial(header_of(frame))) {
    return foreign_partial(frame, reason, connection, now);
  }
  Verdict verdict = wire::is_hello(frame, header_of(frame)) ? foreign_hello(frame, connection, now)
                                                            : foreign_data(frame, connection);
  verdict.foreign = reason;
  return verdict;
}

/// Nobody but the switch that adds it up may see a partial sum (docs/protocol.md §11.4).
Verdict Classifier::foreign_partial(const Frame& frame, ForeignReason reason,
                                    Connection* connection, std::uint64_t now) {
  const bool is_of_ring = connection != nullptr && (connection->state == ConnectionState::live ||
                                                    connection->state == ConnectionState::dead);
  if (!is_of_ring) {
    incarnations_.connections().put_stranger(queue_pair_of(frame), frame.ingress,
                                             ConnectionState::barred, now);
  }
  Verdict verdict = dropped(DropReason::partial_of_unknown_ring);
  verdict.foreign = reason;
  return verdict;
}

Verdict Classifier::foreign_hello(const Frame& frame, Connection* connection, std::uint64_t now) {
  if (connection == nullptr || connection->state != ConnectionState::dead) {
    foreign_sessions_.note(frame, header_of(frame), now);
  }
  switch (connection == nullptr ? ConnectionState::unclassified : connection->state) {
  case ConnectionState::dead: // only an admitted hello revives it
    return dropped(DropReason::dead_connection);
  case ConnectionState::live:
    return {.step = Step::interleave, .ring = connection->ring, .child = connection->child};
  default:
    incarnations_.connections().put_stranger(queue_pair_of(frame), frame.ingress,
                                             ConnectionState::announced, now);
    return forwarded();
  }
}

/// A hello alone opens nothing: a host that goes back to its hello repeats the hello too.
Verdict Classifier::foreign_data(const Frame& frame, Connection* connection) {
  if (connection == nullptr) {
    return dropped(DropReason::unannounced);
  }
  const bool was_greeted = connection->state == ConnectionState::announced ||
                           connection->state == ConnectionState::foreign;
  const InaHeader& ina = header_of(frame);
  if (was_greeted && (is_result(ina) || foreign_sessions_.has(frame, ina))) {
    connection->state = ConnectionState::foreign;
    return forwarded();
  }
  if (was_greeted) {
    connection->state = ConnectionState::barred;
  }
  return dropped(DropReason::unannounced);
}

/// docs/protocol.md §2a: message 0 of the ring's incarnation, or one that would begin the next.
Verdict Classifier::hello(const Opening& opening, Connection* connection, std::uint64_t now) {
  if (incarnations_.incarnation_of(opening.sender.ring) != incarnation_named_by(opening.ina)) {
    return incarnations_.greet(opening, now);
  }
  if (!is_admitted(connection, opening)) {
    return refused(opening.sender, DropReason::hello_elsewhere);
  }
  connection->count_packet(now);
  return enter_history(opening);
}

/// docs/protocol.md §11.5, "Down". What the switch above gave out with the incarnation does not
/// change while it runs.
Verdict Classifier::hello_from_above(const Opening& total, Connection* connection,
                                     std::uint64_t now) {
  if (incarnations_.incarnation_of(total.sender.ring) != incarnation_begun_by(total.ina)) {
    return incarnations_.greet_from_above(total, now);
  }
  if (!is_admitted(connection, total)) {
    return refused(total.sender, DropReason::hello_elsewhere);
  }
  if (total.ina.session.get() != incarnations_.session_from(total.sender)) {
    return refused(total.sender, DropReason::wrong_session);
  }
  connection->count_packet(now);
  return enter_history(total);
}

Verdict Classifier::data_start(const Opening& opening, Connection* connection, std::uint64_t now) {
  const auto& incarnation = incarnations_.incarnation_of(opening.sender.ring);
  if (!incarnation) {
    return dropped(DropReason::no_connection);
  }
  if (opening.ina.epoch.get() != incarnation->epoch) {
    return dropped(DropReason::wrong_epoch);
  }
  if (opening.ina.session.get() != incarnations_.session_from(opening.sender)) {
    return dropped(DropReason::wrong_session);
  }
  if (!is_admitted(connection, opening)) {
    return dropped(DropReason::no_connection);
  }
  connection->count_packet(now);
  if (opening.shape.is_by_operator()) {
    return data_by_operator(opening);
  }
  return enter_history(opening);
}

/// Apart, so that other messages do not pay for it.
[[gnu::noinline]] Verdict Classifier::data_by_operator(const Opening& opening) {
  return incarnations_.operator_named(opening.sender.ring, opening.shape.operation) == nullptr
             ? refused(opening.sender, DropReason::operator_not_granted)
             : enter_history(opening);
}

Verdict Classifier::enter_history(const Opening& opening) {
  const auto entered = incarnations_.history_of(opening.sender)
                           .enter(message_id_of(opening.ina), opening.frame.packet.psn,
                                  opening.packets, opening.shape);
  switch (entered.entry) {
  case MessageHistory::Entry::stale:
    return dropped(DropReason::stale_repeat);
  case MessageHistory::Entry::too_far:
    return dropped(DropReason::window_exceeded);
  case MessageHistory::Entry::conflict:
    return dropped(DropReason::history_conflict);
  case MessageHistory::Entry::entered:
  case MessageHistory::Entry::repeat:
    break;
  }
  return contributed(opening.sender, entered.record, 0);
}

} // namespace weir::conn
