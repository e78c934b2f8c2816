// SPDX-License-Identifier: BSD-3-Clause
#include "conn/classifier.hpp"

#include "frame/frame.hpp"
#include "frame/instant.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"
#include "wire/psn.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weir::conn {

using frame::Frame;
using wire::InaHeader;
using wire::MessageShape;
using wire::Opcode;
using wire::Position;

namespace {

using Step = Verdict::Step;

// By child: one live connection, those of waiting hellos, and the dead of some earlier
// incarnations.
constexpr std::uint32_t kEntriesPerChild = 16;
constexpr std::uint64_t kUntoldAging = 3'600'000;

/// Names a requester by the pair in its direction and by its own queue pair.
std::uint64_t requester_key(std::uint16_t pair, std::uint32_t own_qp) {
  return std::uint64_t{pair} << 24 | own_qp;
}

QueuePair queue_pair_of(const Frame& frame) {
  return {frame.pair, frame.packet.destination_qp};
}

Verdict dropped(DropReason reason) {
  return {.step = Step::drop, .drop = reason};
}

Verdict refused(const ring::RingChild& sender, DropReason reason) {
  return {.step = Step::refuse, .drop = reason, .ring = sender.ring, .child = sender.child};
}

Verdict forwarded() {
  return {.step = Step::forward};
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

/// Milliseconds: 16 local ACK timeouts of 4.096 us x 2^x (IBTA §9.9).
std::uint64_t sixteen_ack_timeouts(std::uint8_t exponent) {
  if (exponent == 0) {
    return kUntoldAging;
  }
  return 16 * recovery::ack_timeout_ns(exponent) / frame::kNsPerMs;
}

bool is_result(const InaHeader& ina) {
  return (ina.flags & kInaFlagResult) != 0;
}

Opcode opcode_of(const Frame& frame) {
  return static_cast<Opcode>(wire::view_as<wire::Bth>(frame.data + frame.packet.bth_offset).opcode);
}

Incarnation incarnation_named_by(const InaHeader& hello) {
  return {hello.epoch.get(), hello.session.get()};
}

/// 0 when the hello tells none, or none that exists: numbers have 24 bits (IBTA §9.2).
std::uint32_t queue_pair_told_by(const InaHeader& hello) {
  constexpr std::uint32_t most = 0xffffff;
  return hello.qp.get() <= most ? hello.qp.get() : 0;
}

const InaHeader& header_of(const Frame& hello) {
  return wire::view_as<InaHeader>(hello.payload());
}

/// The reason why two hellos disagree. Other fields of their shapes are fixed.
std::optional<DropReason> disagreement(const MessageShape& a, const MessageShape& b) {
  if (a.operation != b.operation) {
    return DropReason::disagree_operation;
  }
  return a.data_type == b.data_type ? std::nullopt : std::optional(DropReason::disagree_type);
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

Classifier::RingState::RingState(const ring::Ring& ring)
    : hellos(ring.children()), beginning(ring.children()),
      records(std::size_t{ring.children()} * ring.spec().depth()), admitted(ring.children()),
      flows(ring.children()) {
  const std::uint32_t depth = ring.spec().depth();
  for (std::uint16_t child = 0; child < ring.children(); ++child) {
    const std::span own(records.data() + std::size_t{child} * depth, depth);
    histories.emplace_back(own, ring.spec().packets_per_message());
  }
}

std::uint32_t Classifier::children_of(const ring::RingSet& set,
                                      const std::vector<std::uint16_t>& rings,
                                      const Settings& settings) {
  return std::accumulate(rings.begin(), rings.end(), settings.spare_children,
                         [&](std::uint32_t children, std::uint16_t ring) {
                           return children + set.rings()[ring].children();
                         });
}

ConnectionTable::Settings Classifier::table_settings(const ring::RingSet& set,
                                                     const std::vector<std::uint16_t>& rings,
                                                     const Settings& settings) {
  return {.ring_entries = kEntriesPerChild * children_of(set, rings, settings),
          .plain_entries = settings.plain_entries,
          .ports = settings.ports,
          .aging = settings.aging,
          .hash_key = settings.hash_key};
}

Classifier::Classifier(const ring::CurrentRings& current, const std::vector<std::uint16_t>& rings,
                       const Settings& settings, IsHeld is_held)
    : current_(current), sessions_(settings.sessions),
      foreign_sessions_(*settings.foreign_sessions), claims_(*settings.claims),
      aging_(settings.aging), is_held_(std::move(is_held)),
      connections_(table_settings(*current, rings, settings)),
      requesters_(decltype(requesters_)::kRoomy * children_of(*current, rings, settings),
                  settings.hash_key),
      magic_rule_(magic_rule_settings(settings)), ports_(current),
      spare_children_(settings.spare_children) {
  rings_.reserve(current_->rings().size() + settings.spare_rings);
  rings_.resize(current_->rings().size());
  for (const std::uint16_t ring : rings) {
    take(ring, RingState(current_->rings()[ring]));
  }
}

void Classifier::take(std::uint16_t ring, RingState state) {
  const std::size_t most_given_up = (state.admitted.size() + 1) * WaitingHellos::kPerChild;
  rings_.resize(current_->rings().size());
  rings_[ring].emplace(std::move(state));
  given_up_.reserve(std::max(given_up_.capacity(), most_given_up));
  handed_over_.reserve(given_up_.capacity());
}

void Classifier::adopt(std::uint16_t ring, RingState state) {
  spare_children_ -= static_cast<std::uint32_t>(state.admitted.size());
  take(ring, std::move(state));
  ports_.adopt(ring);
}

Verdict Classifier::classify(Frame& frame, std::uint64_t now) {
  if (!ports_.may_enter(frame.pair, frame.ingress) && !greets_unbound_ring(frame)) {
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

/// True for a hello of a ring that has no port for this member yet. Two rings may share two
/// neighbours; what one ring's hellos said of a port must not keep the other ring from forming.
bool Classifier::greets_unbound_ring(const Frame& frame) const {
  const InaHeader* ina = wire::find_ina_header(frame);
  ring::RingChild sender;
  return ina != nullptr && wire::is_hello(frame, *ina) &&
         !why_foreign(*current_, frame, *ina, sender) && !ports_.port_of(sender);
}

/// The packet's connection; nullptr when the switch has none. `epoch` is from the packet's INA
/// header, if it has one.
Connection* Classifier::look_up(Frame& frame, const std::optional<std::uint32_t>& epoch,
                                std::uint64_t now) {
  const QueuePair name = queue_pair_of(frame);
  Connection* connection = connections_.find_ring(name, now);
  if (connection != nullptr && connection->hellos != 0) [[unlikely]] {
    take_out_overtaken(frame, epoch);
    connection = connections_.find_ring(name, now);
  }
  const bool is_ring = connection != nullptr && connection->state != ConnectionState::unclassified;
  return is_ring ? connection : connections_.find_stranger(name, frame.ingress, now);
}

/// Gives up hellos that wait on the packet's connection at a lower PSN, and came by its port: their
/// sender has gone on.
void Classifier::take_out_overtaken(const Frame& frame, const std::optional<std::uint32_t>& epoch) {
  if (!wire::icrc_is_valid(frame)) {
    return;
  }
  for (const ring::RingChild& sender : current_->senders(frame.pair)) {
    for (WaitingHello& hello : rings_[sender.ring]->hellos.of(sender.child)) {
      const bool is_overtaken = hello.frame != nullptr && hello.frame->ingress == frame.ingress &&
                                hello.frame->packet.destination_qp == frame.packet.destination_qp &&
                                wire::psn_before(hello.frame->packet.psn, frame.packet.psn) &&
                                (!epoch || *epoch == hello.incarnation.epoch);
      if (is_overtaken) {
        give_up(sender.ring, hello, DropReason::hello_overtaken);
      }
    }
  }
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
  const Opening opening = opening_of(*current_, frame, *ina, sender);
  if (ports_.port_of(sender).value_or(frame.ingress) != frame.ingress) {
    return dropped(DropReason::wrong_port);
  }
  if (const auto reason = why_unacceptable(current_->rings()[sender.ring].spec(), opening)) {
    return dropped(*reason);
  }
  return opening.shape.collective == Collective::hello ? hello(opening, connection, now)
                                                       : data_start(opening, connection, now);
}

/// A FIRST or ONLY whose result has left. Of its header only the session counts: with in-place
/// buffers a result may have overwritten the rest. nullopt for any other packet.
std::optional<Verdict> Classifier::repeated_start(const Frame& frame, const InaHeader& ina,
                                                  Connection* connection, std::uint64_t now) {
  if (connection == nullptr || connection->state != ConnectionState::live) {
    return std::nullopt;
  }
  const ring::RingChild sender{connection->ring, connection->child};
  if (!flow_of(sender).is_past(frame.packet.psn) || !may_answer(sender)) {
    return std::nullopt;
  }
  const RingState& state = *rings_[sender.ring];
  const bool is_hello = wire::is_hello(frame, ina);
  const bool is_of_incarnation = ina.session.get() == state.session ||
                                 (is_hello && state.incarnation == incarnation_named_by(ina));
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
  RingState& state = *rings_[sender.ring];
  recovery::Flow& flow = state.flows[sender.child];
  if (flow.is_past(frame.packet.psn) && may_answer(sender)) [[unlikely]] {
    return {.step = Step::repeat, .ring = sender.ring, .child = sender.child};
  }
  const auto located = state.histories[sender.child].locate(frame.packet.psn);
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
  return {.step = Step::contribute,
          .ring = connection.ring,
          .child = connection.child,
          .record = located.record,
          .packet = located.packet,
          .flow = &flow};
}

/// A message without an INA header. On a live connection it changes nothing: on a plain
/// connection, repeats of the ring's own packets would be forwarded raw. But when the ring has not
/// used the queue pair for the aging time, the queue pair is taken for a new one.
Verdict Classifier::plain_start(const Frame& frame, Connection* connection, std::uint64_t now) {
  switch (connection == nullptr ? ConnectionState::unclassified : connection->state) {
  case ConnectionState::live: {
    const bool was_silent = connection->silence(now) > aging_;
    if (!was_silent || is_held_({connection->ring, connection->child})) {
      connection->count_packet(now);
      return {.step = Step::interleave, .ring = connection->ring, .child = connection->child};
    }
    leave_ring(*connection);
    forget_ring_of(*connection);
    break;
  }
  case ConnectionState::dead:
    if (connection->port != frame.ingress) {
      return dropped(DropReason::wrong_port);
    }
    forget_ring_of(*connection);
    break;
  default:
    break;
  }
  connections_.put_stranger(queue_pair_of(frame), frame.ingress, ConnectionState::plain, now)
      .count_packet(now);
  return forwarded();
}

/// The queue pair of a dead connection has become plain.
void Classifier::forget_ring_of(Connection& dead) {
  dead.state = ConnectionState::unclassified;
  connections_.forget_unused(dead);
}

/// docs/protocol.md §3, "The magic". A header that belongs to no ring may come from a withdrawn
/// ring, whose receivers still wait for the rest of a message.
Verdict Classifier::foreign_start(const Frame& frame, ForeignReason reason, Connection* connection,
                                  std::uint64_t now) {
  if (connection != nullptr) {
    connection->count_packet(now);
  }
  Verdict verdict = wire::is_hello(frame, header_of(frame)) ? foreign_hello(frame, connection, now)
                                                            : foreign_data(frame, connection);
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
    connections_.put_stranger(queue_pair_of(frame), frame.ingress, ConnectionState::announced, now);
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
  RingState& state = *rings_[opening.sender.ring];
  if (state.incarnation == incarnation_named_by(opening.ina)) {
    if (!is_admitted(connection, opening)) {
      return refused(opening.sender, DropReason::hello_elsewhere);
    }
    connection->count_packet(now);
    return enter_history(opening);
  }
  if (const auto reason = why_not_taken(opening)) {
    return refused(opening.sender, *reason);
  }
  if (const auto reason = why_not_waiting(state, opening)) {
    if (reason == DropReason::repeat_held) {
      state.greeted_at = now;
      return dropped(*reason);
    }
    return refused(opening.sender, *reason);
  }
  return wait(state, opening, now);
}

/// Why its run may not begin on this ring.
std::optional<DropReason> Classifier::why_not_taken(const Opening& opening) const {
  const RingState& state = *rings_[opening.sender.ring];
  const Incarnation incarnation = incarnation_named_by(opening.ina);
  const std::uint32_t only_nonce = current_->rings()[opening.sender.ring].spec().nonce;
  if (only_nonce != 0 && incarnation.nonce != only_nonce) {
    return DropReason::wrong_nonce;
  }
  if (state.epoch && incarnation.epoch < *state.epoch) {
    return DropReason::old_epoch;
  }
  if (state.retired.has(incarnation.nonce)) {
    return DropReason::retired_nonce;
  }
  return state.draining_since ? std::optional(DropReason::ring_draining) : std::nullopt;
}

std::optional<DropReason> Classifier::why_not_waiting(RingState& state, const Opening& opening) {
  const Incarnation incarnation = incarnation_named_by(opening.ina);
  if (const WaitingHello* known = state.hellos.find(opening.sender.child, incarnation)) {
    const wire::Packet& packet = known->frame->packet;
    const bool is_repeat = packet.destination_qp == opening.frame.packet.destination_qp &&
                           packet.psn == opening.frame.packet.psn;
    return is_repeat ? DropReason::repeat_held : DropReason::hello_conflict;
  }
  const WaitingHello* others = state.hellos.find(incarnation);
  return others == nullptr
             ? std::nullopt
             : disagreement(MessageShape::of(header_of(*others->frame)), opening.shape);
}

Verdict Classifier::wait(RingState& state, const Opening& opening, std::uint64_t now) {
  Connection* connection = connections_.take_in(queue_pair_of(opening.frame), now);
  if (connection == nullptr) {
    return dropped(DropReason::connection_table_full);
  }
  connection->count_packet(now);
  state.greeted_at = now;
  ++connection->hellos;
  WaitingHello& place = state.hellos.place_for(opening.sender.child, opening.frame.ingress);
  if (place.frame != nullptr) {
    give_up(opening.sender.ring, place, DropReason::hello_displaced);
  }
  const Incarnation incarnation = incarnation_named_by(opening.ina);
  const std::uint64_t claim = claim_of(opening);
  if (claim != 0) {
    claims_.add(claim);
  }
  state.hellos.put(place, {.frame = &opening.frame,
                           .connection = connection,
                           .incarnation = incarnation,
                           .claim = claim,
                           .arrived_ns = now * frame::kNsPerMs,
                           .kept_alive_ns = now * frame::kNsPerMs});
  const bool is_complete = state.hellos.is_complete(incarnation);
  if (is_complete) {
    state.complete = incarnation;
  }
  return {.step = is_complete ? Step::begin : Step::wait,
          .ring = opening.sender.ring,
          .child = opening.sender.child};
}

/// The name of what a hello says about its queue pair; 0: it says nothing.
std::uint64_t Classifier::claim_of(const Opening& hello) const {
  const std::uint32_t qp = queue_pair_told_by(hello.ina);
  return qp == 0 ? 0 : claims_.name_of(hello.frame.source(), qp, hello.frame.ingress);
}

std::span<Frame* const> Classifier::begin(std::uint16_t ring, std::uint64_t now) {
  RingState& state = *rings_[ring];
  end_incarnation(ring);
  state.incarnation = std::exchange(state.complete, std::nullopt);
  state.epoch = state.incarnation->epoch;
  state.session = sessions_.draw(state.session);
  for (std::uint16_t child = 0; child < state.admitted.size(); ++child) {
    const WaitingHello hello = state.hellos.take(*state.hellos.find(child, *state.incarnation));
    admit(hello, {ring, child}, now);
    state.beginning[child] = hello.frame;
  }
  give_up_all(ring, DropReason::hello_given_up);
  return state.beginning;
}

Verdict Classifier::hello_verdict(const ring::RingChild& sender) {
  RingState& state = *rings_[sender.ring];
  return {.step = Step::contribute,
          .ring = sender.ring,
          .child = sender.child,
          .record = state.histories[sender.child].greeting(),
          .flow = &state.flows[sender.child]};
}

void Classifier::admit(const WaitingHello& hello, const ring::RingChild& sender,
                       std::uint64_t now) {
  RingState& state = *rings_[sender.ring];
  Connection& connection = *hello.connection;
  --connection.hellos;
  // It belonged to another ring before.
  if (connection.state == ConnectionState::live) {
    leave_ring(connection);
  }
  const Frame& frame = *hello.frame;
  connections_.forget_strangers(queue_pair_of(frame));
  connection.state = ConnectionState::live;
  connection.ring = sender.ring;
  connection.child = sender.child;
  connection.port = frame.ingress;
  connection.ack_timeout = header_of(frame).ack_timeout;
  connection.last_seen = now; // its hello may have waited for longer than the aging time
  state.admitted[sender.child] = &connection;
  state.histories[sender.child].begin(frame.packet.psn, MessageShape::of(header_of(frame)));
  ports_.bind(sender, frame.ingress);
  begin_flow(hello, sender, now);
}

/// The live connection has the waiting hello's claim from now on.
void Classifier::begin_flow(const WaitingHello& hello, const ring::RingChild& sender,
                            std::uint64_t now) {
  const Frame& frame = *hello.frame;
  const InaHeader& ina = header_of(frame);
  recovery::Flow& flow = flow_of(sender);
  flow.begin(frame.packet.psn, queue_pair_told_by(ina), ina.ack_timeout, now * frame::kNsPerMs);
  flow.claim = hello.claim;
  if (hello.claim != 0) {
    name_requester(sender);
  }
}

/// Makes the sender the one that acknowledgements to its queue pair are for, unless another calls
/// that queue pair its own already. The switch answers neither of the two then.
void Classifier::name_requester(const ring::RingChild& sender) {
  const std::uint64_t key = requester_key(current_->pair_of(sender), flow_of(sender).own_qp);
  Requester* requester = requesters_.find(key);
  if (requester == nullptr) {
    requester = requesters_.insert(key);
    if (requester == nullptr) {
      return;
    }
    requester->sender = sender;
  }
  ++requester->claimants;
}

void Classifier::end_flow(const ring::RingChild& sender) {
  recovery::Flow& flow = flow_of(sender);
  flow.is_live = false;
  if (flow.claim == 0) {
    return;
  }
  claims_.remove(flow.claim);
  const std::uint16_t pair = current_->pair_of(sender);
  Requester* requester = requesters_.find(requester_key(pair, flow.own_qp));
  if (requester == nullptr) {
    return;
  }
  if (--requester->claimants == 0) {
    return requesters_.erase(*requester);
  }
  for (const ring::RingChild& other : current_->senders(pair)) {
    if (flow_of(other).is_live && flow_of(other).own_qp == flow.own_qp) {
      requester->sender = other;
    }
  }
}

std::optional<ring::RingChild> Classifier::sender_acknowledged_by(const Frame& answer) {
  const std::uint16_t pair = current_->reverse_of(answer.pair);
  const Requester* requester = requesters_.find(requester_key(pair, answer.packet.destination_qp));
  return requester == nullptr ? std::nullopt : std::optional(requester->sender);
}

/// Whether the acknowledgements to the sender's queue pair are certainly for this connection.
bool Classifier::is_only_requester(const ring::RingChild& sender) const {
  const Requester* requester =
      requesters_.find(requester_key(current_->pair_of(sender), flow_of(sender).own_qp));
  return requester != nullptr && requester->claimants == 1;
}

bool Classifier::may_answer(const ring::RingChild& sender) const {
  const RingState& state = *rings_[sender.ring];
  const recovery::Flow& flow = state.flows[sender.child];
  return flow.is_live && flow.claim != 0 &&
         !state.histories[sender.child].is_below_floor(flow.unacknowledged) &&
         claims_.is_sole(flow.claim) && is_only_requester(sender);
}

Verdict Classifier::data_start(const Opening& opening, Connection* connection, std::uint64_t now) {
  const RingState& state = *rings_[opening.sender.ring];
  if (!state.incarnation) {
    return dropped(DropReason::no_connection);
  }
  if (opening.ina.epoch.get() != state.incarnation->epoch) {
    return dropped(DropReason::wrong_epoch);
  }
  if (opening.ina.session.get() != state.session) {
    return dropped(DropReason::wrong_session);
  }
  if (!is_admitted(connection, opening)) {
    return dropped(DropReason::no_connection);
  }
  connection->count_packet(now);
  return enter_history(opening);
}

Verdict Classifier::enter_history(const Opening& opening) {
  const auto entered = rings_[opening.sender.ring]->histories[opening.sender.child].enter(
      opening.ina.message_id.get(), opening.frame.packet.psn, opening.packets, opening.shape);
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
  return {.step = Step::contribute,
          .ring = opening.sender.ring,
          .child = opening.sender.child,
          .record = entered.record,
          .flow = &flow_of(opening.sender)};
}

void Classifier::end_incarnation(std::uint16_t ring) {
  RingState& state = *rings_[ring];
  if (!state.incarnation) {
    return;
  }
  state.retired.add(state.incarnation->nonce);
  state.incarnation.reset();
  for (Connection* connection : state.admitted) {
    if (connection != nullptr) {
      leave_ring(*connection);
    }
  }
  ports_.release(ring);
}

void Classifier::leave_ring(Connection& connection) {
  end_flow({connection.ring, connection.child});
  rings_[connection.ring]->admitted[connection.child] = nullptr;
  connection.state = ConnectionState::dead;
  connection.aging = std::max(aging_, sixteen_ack_timeouts(connection.ack_timeout));
}

void Classifier::update_ports(std::uint16_t ring) {
  RingState& state = *rings_[ring];
  ports_.update_configured(ring);
  for (std::uint16_t child = 0; child < state.admitted.size(); ++child) {
    const std::optional<std::uint16_t> port = ports_.port_of({ring, child});
    if (Connection* connection = state.admitted[child]; connection != nullptr) {
      connection->port = port.value_or(connection->port);
      move_claim({ring, child}, connection->port);
    }
    for (WaitingHello& hello : state.hellos.of(child)) {
      if (hello.frame != nullptr && port.value_or(hello.frame->ingress) != hello.frame->ingress) {
        give_up(ring, hello, DropReason::wrong_port);
      }
    }
  }
}

/// What the switch says to the sender leaves by this port from now on.
void Classifier::move_claim(const ring::RingChild& sender, std::uint16_t port) {
  recovery::Flow& flow = flow_of(sender);
  if (flow.claim == 0) {
    return;
  }
  claims_.remove(flow.claim);
  const wire::IpAddress& source = current_->source_of(current_->pair_of(sender));
  flow.claim = claims_.name_of(source, flow.own_qp, port);
  claims_.add(flow.claim);
}

bool Classifier::speaks_by(const ring::RingChild& child, std::uint16_t port) const {
  const auto came_by_it = [port](const WaitingHello& hello) {
    return hello.frame != nullptr && hello.frame->ingress == port;
  };
  return ports_.port_of(child) == port ||
         std::ranges::any_of(rings_[child.ring]->hellos.of(child.child), came_by_it);
}

void Classifier::set_aging(std::uint64_t milliseconds) {
  aging_ = milliseconds;
  connections_.set_aging(milliseconds);
  magic_rule_.set_aging(milliseconds);
}

void Classifier::reset(std::uint16_t ring) {
  end_incarnation(ring);
  rings_[ring]->epoch.reset();
  give_up_all(ring, DropReason::ring_reset);
}

void Classifier::drain(std::uint16_t ring, std::uint64_t now) {
  RingState& state = *rings_[ring];
  if (!state.draining_since) {
    state.draining_since = now;
    give_up_all(ring, DropReason::ring_draining);
  }
}

std::uint64_t Classifier::last_request(std::uint16_t ring) const {
  const RingState& state = *rings_[ring];
  std::uint64_t last = state.greeted_at;
  for (const Connection* connection : state.admitted) {
    last = std::max(last, connection == nullptr ? 0 : connection->last_seen);
  }
  return last;
}

Classifier::RingState Classifier::withdraw(std::uint16_t ring) {
  end_incarnation(ring);
  give_up_all(ring, DropReason::ring_withdrawn);
  RingState state = std::move(*rings_[ring]);
  rings_[ring].reset();
  spare_children_ += static_cast<std::uint32_t>(state.admitted.size());
  return state;
}

void Classifier::give_up(std::uint16_t ring, WaitingHello& hello, DropReason reason) {
  const WaitingHello taken = rings_[ring]->hellos.take(hello);
  given_up_.push_back({taken.frame, ring, reason});
  if (taken.claim != 0) {
    claims_.remove(taken.claim);
  }
  --taken.connection->hellos;
  connections_.forget_unused(*taken.connection);
}

void Classifier::give_up_all(std::uint16_t ring, DropReason reason) {
  RingState& state = *rings_[ring];
  for (std::uint16_t child = 0; state.hellos.size() != 0; ++child) {
    for (WaitingHello& hello : state.hellos.of(child)) {
      if (hello.frame != nullptr) {
        give_up(ring, hello, reason);
      }
    }
  }
}

std::span<const GivenUp> Classifier::take_given_up() {
  handed_over_.clear();
  std::swap(handed_over_, given_up_);
  return handed_over_;
}

std::uint64_t Classifier::waiting_hellos() const {
  std::uint64_t hellos = 0;
  for (const auto& state : rings_) {
    hellos += state ? state->hellos.size() : 0;
  }
  return hellos;
}

ChildStatus Classifier::status_of(std::uint16_t ring, std::uint16_t child) const {
  const RingState& state = *rings_[ring];
  ChildStatus status{.waiting_hellos = state.hellos.waiting_of(child),
                     .recovery = state.flows[child].counters};
  if (const Connection* connection = state.admitted[child]; connection != nullptr) {
    status.connected = true;
    status.qp = connection->qp;
    status.newest_message = state.histories[child].newest();
    status.packets = connection->packets;
    status.last_seen = connection->last_seen;
  }
  return status;
}

} // namespace weir::conn
