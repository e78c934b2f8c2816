// SPDX-License-Identifier: BSD-3-Clause
#include "conn/incarnations.hpp"

#include "frame/instant.hpp"
#include "wire/icrc.hpp"
#include "wire/psn.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <utility>

namespace weir::conn {

using frame::Frame;
using wire::InaHeader;
using wire::MessageShape;
using wire::OperatorEntry;
using wire::OperatorTable;

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

/// Milliseconds: 16 local ACK timeouts of 4.096 us x 2^x (IBTA §9.9).
std::uint64_t sixteen_ack_timeouts(std::uint8_t exponent) {
  if (exponent == 0) {
    return kUntoldAging;
  }
  return 16 * recovery::ack_timeout_ns(exponent) / frame::kNsPerMs;
}

/// Whether two tables have the same operators, but for those that a switch on the way lacks.
bool are_alike(const OperatorTable& one, const OperatorTable& other) {
  return std::ranges::equal(one.entries(), other.entries(),
                            [](const OperatorEntry& a, const OperatorEntry& b) {
                              return a == b || a.is_empty() || b.is_empty();
                            });
}

/// The reason why a waiting hello and another one, or its result, disagree. Other fields of their
/// shapes are fixed.
std::optional<DropReason> disagreement(const Frame& waiting, const Opening& other) {
  const MessageShape shape = shape_of(header_of(waiting));
  if (shape.operation != other.shape.operation) {
    return DropReason::disagree_operation;
  }
  if (shape.data_type != other.shape.data_type) {
    return DropReason::disagree_type;
  }
  return are_alike(table_of(waiting), table_of(other.frame))
             ? std::nullopt
             : std::optional(DropReason::operator_tables_differ);
}

/// What message 0 says of operators is what the switch has agreed on: its fold is any of these.
void write_operators(Frame& hello, const OperatorTable& operators) {
  const auto bytes = operators.bytes();
  if (!bytes.empty()) {
    std::memcpy(hello.payload() + sizeof(InaHeader), bytes.data(), bytes.size());
  }
}

} // namespace

RingConnections::RingConnections(const ring::Ring& ring)
    : hellos(ring.children()), beginning(ring.children()),
      records(std::size_t{ring.senders()} * ring.spec().depth()), admitted(ring.senders()),
      flows(ring.senders()) {
  ungranted.reserve(kMostOperators);
  const std::uint32_t depth = ring.spec().depth();
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const std::span own(records.data() + std::size_t{sender} * depth, depth);
    histories.emplace_back(own, ring.spec().packets_per_message());
  }
}

std::uint32_t Incarnations::children_of(const ring::RingSet& set,
                                        const std::vector<std::uint16_t>& rings,
                                        const Settings& settings) {
  return std::accumulate(rings.begin(), rings.end(), settings.spare_children,
                         [&](std::uint32_t children, std::uint16_t ring) {
                           return children + set.rings()[ring].senders();
                         });
}

ConnectionTable::Settings Incarnations::table_settings(const ring::RingSet& set,
                                                       const std::vector<std::uint16_t>& rings,
                                                       const Settings& settings) {
  return {.ring_entries = kEntriesPerChild * children_of(set, rings, settings),
          .plain_entries = settings.plain_entries,
          .ports = settings.ports,
          .aging = settings.aging,
          .hash_key = settings.hash_key};
}

Incarnations::Incarnations(const ring::CurrentRings& current,
                           const std::vector<std::uint16_t>& rings, const Settings& settings)
    : current_(current), sessions_(settings.sessions), claims_(*settings.claims),
      aging_(settings.aging), connections_(table_settings(*current, rings, settings)),
      requesters_(decltype(requesters_)::kRoomy * children_of(*current, rings, settings),
                  settings.hash_key),
      ports_(settings.ports_of_members != nullptr ? *settings.ports_of_members
                                                  : own_ports_.emplace(current)),
      owners_(settings.owners), worker_(settings.worker), operators_(settings.operators),
      spare_children_(settings.spare_children) {
  rings_.reserve(current_->rings().size() + settings.spare_rings);
  operators_of_runs_.reserve(current_->rings().size() + settings.spare_rings);
  rings_.resize(current_->rings().size());
  for (const std::uint16_t ring : rings) {
    take(ring, RingConnections(current_->rings()[ring]));
  }
}

void Incarnations::take(std::uint16_t ring, RingConnections connections) {
  const std::size_t most_given_up = (connections.admitted.size() + 1) * WaitingHellos::kPerChild;
  rings_.resize(current_->rings().size());
  operators_of_runs_.resize(current_->rings().size());
  assert(!rings_[ring]);
  rings_[ring].emplace(std::move(connections));
  given_up_.reserve(std::max(given_up_.capacity(), most_given_up));
  handed_over_.reserve(given_up_.capacity());
}

void Incarnations::adopt(std::uint16_t ring, RingConnections connections) {
  assert(spare_children_ >= connections.admitted.size());
  spare_children_ -= static_cast<std::uint32_t>(connections.admitted.size());
  take(ring, std::move(connections));
  ports_.adopt(ring);
}

Verdict Incarnations::greet(const Opening& opening, std::uint64_t now) {
  RingConnections& ring = *rings_[opening.sender.ring];
  if (const auto reason = why_not_taken(opening)) {
    return refused(opening.sender, *reason);
  }
  if (const auto reason = why_not_waiting(ring, opening)) {
    if (reason == DropReason::repeat_held) {
      ring.greeted_at = now;
      return dropped(*reason);
    }
    return refused(opening.sender, *reason);
  }
  return wait(ring, opening, now);
}

/// Why its run may not begin on this ring.
std::optional<DropReason> Incarnations::why_not_taken(const Opening& opening) const {
  const RingConnections& state = *rings_[opening.sender.ring];
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

std::optional<DropReason> Incarnations::why_not_waiting(RingConnections& state,
                                                        const Opening& opening) {
  const Incarnation incarnation = incarnation_named_by(opening.ina);
  if (WaitingHello* known = state.hellos.find(opening.sender.child, incarnation)) {
    const wire::Packet& packet = known->frame->packet;
    const bool is_repeat = packet.destination_qp == opening.frame.packet.destination_qp &&
                           packet.psn == opening.frame.packet.psn;
    if (!is_repeat) {
      return DropReason::hello_conflict;
    }
    state.hellos.hear(*known);
    return DropReason::repeat_held;
  }
  const auto children = static_cast<std::uint16_t>(state.beginning.size());
  for (std::uint16_t child = 0; child < children; ++child) {
    const WaitingHello* other = state.hellos.find(child, incarnation);
    const auto reason = other == nullptr ? std::nullopt : disagreement(*other->frame, opening);
    if (reason) {
      return reason;
    }
  }
  return std::nullopt;
}

/// By entry, what all hellos of the set name; else empty.
OperatorTable Incarnations::asked_operators(std::uint16_t ring,
                                            const Incarnation& incarnation) const {
  const RingConnections& state = *rings_[ring];
  const auto children = static_cast<std::uint16_t>(state.beginning.size());
  OperatorTable table = table_of(*state.hellos.find(0, incarnation)->frame);
  for (std::uint16_t child = 1; child < children; ++child) {
    table.keep_common(table_of(*state.hellos.find(child, incarnation)->frame));
  }
  return table;
}

/// By entry, those that this switch grants to the ring; else empty.
OperatorTable Incarnations::granted_of(std::uint16_t ring, OperatorTable table) const {
  for (OperatorEntry& entry : table.entries()) {
    if (granted(ring, entry) == nullptr) {
      entry = {};
    }
  }
  return table;
}

const program::Operator* Incarnations::granted(std::uint16_t ring,
                                               const OperatorEntry& entry) const {
  if (operators_ == nullptr || entry.is_empty()) {
    return nullptr;
  }
  const ring::RingSpec& spec = current_->rings()[ring].spec();
  return (*operators_)->granted(entry.digest, spec.tenant, spec.id);
}

/// What the hellos of the incarnation that begins name, and this switch does not grant. It is not
/// its run that needs them, but who looks for a reason.
void Incarnations::note_ungranted(std::uint16_t ring, const OperatorTable& asked) {
  std::vector<OperatorEntry>& ungranted = rings_[ring]->ungranted;
  ungranted.clear();
  for (const OperatorEntry& entry : asked.entries()) {
    if (!entry.is_empty() && granted(ring, entry) == nullptr) {
      ungranted.push_back(entry);
    }
  }
}

/// By entry, those of all hellos of the set that this switch grants to the ring; else empty.
OperatorTable Incarnations::agreed_operators(std::uint16_t ring,
                                             const Incarnation& incarnation) const {
  return granted_of(ring, asked_operators(ring, incarnation));
}

/// The incarnation that begins folds by these. All are granted.
void Incarnations::agree_on(std::uint16_t ring, const OperatorTable& operators) {
  const auto entries = operators.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const program::Operator* by = granted(ring, entries[i]);
    operators_of_runs_[ring][i] = {entries[i].number, by, by != nullptr && by->disagrees()};
  }
}

bool Incarnations::uses(std::uint16_t ring, const program::Digest& digest) const {
  const RingConnections& state = *rings_[ring];
  if (std::ranges::any_of(operators_of_runs_[ring], [&](const RunOperator& one) {
        return one.by != nullptr && one.by->digest() == digest;
      })) {
    return true;
  }
  const auto last = static_cast<std::uint16_t>(state.beginning.size() - 1u);
  return std::ranges::any_of(state.hellos.of(last), [&](const WaitingHello& hello) {
    return hello.frame != nullptr && state.hellos.has_climbed(hello.incarnation) &&
           std::ranges::count(agreed_operators(ring, hello.incarnation).entries(), digest,
                              &OperatorEntry::digest) != 0;
  });
}

Verdict Incarnations::wait(RingConnections& state, const Opening& opening, std::uint64_t now) {
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
  const std::uint64_t claim = claim_of(opening.frame);
  if (claim != 0) {
    claims_.add(claim);
  }
  state.hellos.put(place, {.frame = &opening.frame,
                           .connection = connection,
                           .incarnation = incarnation,
                           .claim = claim});
  const bool is_complete = state.hellos.is_complete(incarnation);
  const bool is_root = current_->rings()[opening.sender.ring].is_root();
  if (is_complete && is_root) {
    state.complete = incarnation;
  }
  const Step then = is_root ? Step::begin : Step::climb;
  return {.step = is_complete ? then : Step::wait,
          .ring = opening.sender.ring,
          .child = opening.sender.child};
}

/// Only what all children wait for, and what the switch above has been told of: it gives the hosts
/// below nothing that they have not asked for.
Verdict Incarnations::greet_from_above(const Opening& total, std::uint64_t now) {
  RingConnections& state = *rings_[total.sender.ring];
  const Incarnation incarnation = incarnation_begun_by(total.ina);
  if (!state.hellos.has_climbed(incarnation)) {
    return refused(total.sender, DropReason::total_without_set);
  }
  if (const auto reason = disagreement(*state.hellos.find(incarnation)->frame, total)) {
    return refused(total.sender, *reason);
  }
  if (!has_all(total)) {
    return refused(total.sender, DropReason::operator_tables_differ);
  }
  if (connections_.take_in(queue_pair_of(total.frame), now) == nullptr) {
    return dropped(DropReason::connection_table_full);
  }
  state.complete = incarnation;
  return {.step = Step::descend, .ring = total.sender.ring, .child = total.sender.child};
}

/// The switch above may name only what has gone up, and what is still here.
bool Incarnations::has_all(const Opening& total) const {
  const OperatorTable above = table_of(total.frame);
  OperatorTable common = above;
  common.keep_common(agreed_operators(total.sender.ring, incarnation_begun_by(total.ina)));
  return common == above;
}

bool Incarnations::is_awaited(const ring::RingChild& sender, const WaitingHello& hello) {
  const ring::Ring& ring = current_->rings()[sender.ring];
  return ring.is_rank(sender.child) &&
         (ring.is_root() || !rings_[sender.ring]->hellos.is_older_set(hello.incarnation));
}

wire::SumStamp Incarnations::stamp_for(const ring::RingChild& sender) const {
  const RingConnections& state = *rings_[sender.ring];
  const ring::Ring& ring = current_->rings()[sender.ring];
  return ring.leg_of(sender.child) == ring::Leg::outgoing
             ? wire::SumStamp::partial(state.parent_session, ring.digest(), ring.range().first)
             : wire::SumStamp::total(state.session);
}

/// The name of what a hello says about its queue pair; 0: it says nothing.
std::uint64_t Incarnations::claim_of(const Frame& hello) const {
  const std::uint32_t qp = queue_pair_told_by(header_of(hello));
  return qp == 0 ? 0 : claims_.name_of(hello.source(), qp, hello.ingress);
}

std::span<Frame* const> Incarnations::begin(std::uint16_t ring, std::uint64_t now) {
  RingConnections& state = *rings_[ring];
  const Sets staying = sets_that_stay(ring);
  end_incarnation(ring);
  state.incarnation = std::exchange(state.complete, std::nullopt);
  assert(state.incarnation && state.hellos.is_complete(*state.incarnation));
  const OperatorTable asked = asked_operators(ring, *state.incarnation);
  const OperatorTable operators = granted_of(ring, asked);
  agree_on(ring, operators);
  note_ungranted(ring, asked);
  state.epoch = state.incarnation->epoch;
  state.session = sessions_.draw(state.session);
  for (std::uint16_t child = 0; child < state.beginning.size(); ++child) {
    const WaitingHello hello = state.hellos.take(*state.hellos.find(child, *state.incarnation));
    admit(hello, {ring, child}, now);
    write_operators(*hello.frame, operators);
    state.beginning[child] = hello.frame;
  }
  give_up_if(ring, DropReason::hello_given_up, [&](const WaitingHello& hello) {
    return std::ranges::find(staying, hello.incarnation) == staying.end();
  });
  return state.beginning;
}

/// When an incarnation begins, living hosts repeat their other hellos. But a set that has climbed
/// may have begun above already: then a host whose hello the next switch has acknowledged says it
/// no more. So such a set goes on waiting, and climbing, if it may be the newer run: of a larger
/// epoch, or of the same one and the newest. What is no set is an incarnation without a nonce.
Incarnations::Sets Incarnations::sets_that_stay(std::uint16_t ring) {
  RingConnections& state = *rings_[ring];
  Sets staying{};
  if (current_->rings()[ring].is_root()) {
    return staying;
  }
  const WaitingHello* newest = state.hellos.newest_complete();
  const auto last = static_cast<std::uint16_t>(state.beginning.size() - 1u);
  std::size_t count = 0;
  for (const WaitingHello& hello : state.hellos.of(last)) {
    const Incarnation& other = hello.incarnation;
    const bool is_newer = other.epoch > state.complete->epoch ||
                          (other.epoch == state.complete->epoch && newest == &hello);
    const bool is_another = hello.frame != nullptr && other != *state.complete;
    if (is_another && is_newer && state.hellos.has_climbed(other)) {
      staying[count++] = other;
    }
  }
  return staying;
}

std::span<Frame* const> Incarnations::begin_below(Frame& total, const ring::RingChild& parent,
                                                  std::uint64_t now) {
  const auto hellos = begin(parent.ring, now);
  agree_on(parent.ring, table_of(total)); // has_all() has said yes
  rings_[parent.ring]->parent_session = header_of(total).session.get();
  admit_parent(total, parent, now);
  return hellos;
}

/// Its hello's result is to this switch what a child's hello is: it tells the rank's queue pair.
void Incarnations::admit_parent(Frame& total, const ring::RingChild& parent, std::uint64_t now) {
  Connection* connection = connections_.take_in(queue_pair_of(total), now);
  assert(connection != nullptr); // greet_from_above() has asked for it
  ++connection->hellos;
  const std::uint64_t claim = claim_of(total);
  if (claim != 0) {
    claims_.add(claim);
  }
  admit({.frame = &total, .connection = connection, .claim = claim}, parent, now);
}

Verdict Incarnations::hello_verdict(const ring::RingChild& sender) {
  RingConnections& state = *rings_[sender.ring];
  const bool is_parent = current_->rings()[sender.ring].is_parent(sender.child);
  return {.step = is_parent ? Step::total : Step::contribute,
          .ring = sender.ring,
          .child = sender.child,
          .record = state.histories[sender.child].greeting(),
          .flow = &state.flows[sender.child]};
}

void Incarnations::admit(const WaitingHello& hello, const ring::RingChild& sender,
                         std::uint64_t now) {
  RingConnections& state = *rings_[sender.ring];
  Connection& connection = *hello.connection;
  assert(connection.hellos != 0);
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
  state.histories[sender.child].begin(frame.packet.psn, shape_of(header_of(frame)));
  ports_.bind(sender, frame.ingress);
  if (owners_ != nullptr) {
    owners_->admit(queue_pair_of(frame), worker_);
  }
  begin_flow(hello, sender, now);
}

/// The live connection has the waiting hello's claim from now on.
void Incarnations::begin_flow(const WaitingHello& hello, const ring::RingChild& sender,
                              std::uint64_t now) {
  const Frame& frame = *hello.frame;
  const InaHeader& ina = header_of(frame);
  recovery::Flow& flow = flow_of(sender);
  flow.begin(frame.packet.psn, queue_pair_told_by(ina), ina.ack_timeout, now * frame::kNsPerMs);
  flow.claim = hello.claim;
  if (hello.claim != 0) {
    name_requester(sender);
  }
  if (hello.claim != 0 && owners_ != nullptr) {
    owners_->claim(answers_to(sender), worker_);
  }
}

/// Makes the sender the one that acknowledgements to its queue pair are for, unless another calls
/// that queue pair its own already. The switch answers neither of the two then.
void Incarnations::name_requester(const ring::RingChild& sender) {
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

QueuePair Incarnations::answers_to(const ring::RingChild& sender) const {
  return {current_->reverse_of(current_->pair_of(sender)), flow_of(sender).own_qp};
}

void Incarnations::end_flow(const ring::RingChild& sender) {
  recovery::Flow& flow = flow_of(sender);
  flow.is_live = false;
  if (flow.claim == 0) {
    return;
  }
  claims_.remove(flow.claim);
  if (owners_ != nullptr) {
    owners_->give_up_claim(answers_to(sender));
  }
  const std::uint16_t pair = current_->pair_of(sender);
  Requester* requester = requesters_.find(requester_key(pair, flow.own_qp));
  if (requester == nullptr) {
    return;
  }
  assert(requester->claimants != 0);
  if (--requester->claimants == 0) {
    return requesters_.erase(*requester);
  }
  for (const ring::RingChild& other : current_->senders(pair)) {
    if (has(other.ring) && flow_of(other).is_live && flow_of(other).own_qp == flow.own_qp) {
      requester->sender = other;
    }
  }
}

std::optional<ring::RingChild> Incarnations::sender_acknowledged_by(const Frame& answer) {
  const std::uint16_t pair = current_->reverse_of(answer.pair);
  const Requester* requester = requesters_.find(requester_key(pair, answer.packet.destination_qp));
  return requester == nullptr ? std::nullopt : std::optional(requester->sender);
}

/// Whether the acknowledgements to the sender's queue pair are certainly for this connection.
bool Incarnations::is_only_requester(const ring::RingChild& sender) const {
  const Requester* requester =
      requesters_.find(requester_key(current_->pair_of(sender), flow_of(sender).own_qp));
  return requester != nullptr && requester->claimants == 1 &&
         (owners_ == nullptr || owners_->is_sole_claim(answers_to(sender), worker_));
}

bool Incarnations::may_answer(const ring::RingChild& sender) const {
  const RingConnections& state = *rings_[sender.ring];
  const recovery::Flow& flow = state.flows[sender.child];
  return flow.is_live && flow.claim != 0 &&
         !state.histories[sender.child].is_below_floor(flow.unacknowledged) &&
         claims_.is_sole(flow.claim) && is_only_requester(sender);
}

void Incarnations::end_incarnation(std::uint16_t ring) {
  RingConnections& state = *rings_[ring];
  if (!state.incarnation) {
    return;
  }
  state.retired.add(state.incarnation->nonce);
  state.incarnation.reset();
  state.ungranted.clear();
  operators_of_runs_[ring] = {};
  for (Connection* connection : state.admitted) {
    if (connection != nullptr) {
      leave_ring(*connection);
    }
  }
  ports_.release(ring);
}

void Incarnations::leave_ring(Connection& connection) {
  assert(rings_[connection.ring]->admitted[connection.child] == &connection);
  end_flow({connection.ring, connection.child});
  rings_[connection.ring]->admitted[connection.child] = nullptr;
  connection.state = ConnectionState::dead;
  connection.aging = std::max(aging_, sixteen_ack_timeouts(connection.ack_timeout));
  if (owners_ != nullptr) {
    owners_->end({connection.pair, connection.qp}, worker_);
  }
}

void Incarnations::leave_moved(std::uint64_t now) {
  owners_->take_moved(worker_, [&](const QueuePair& name) {
    Connection* connection = connections_.find_ring(name, now);
    if (connection != nullptr && connection->state == ConnectionState::live) {
      leave_ring(*connection);
    }
  });
}

void Incarnations::forget_ring_of(Connection& dead) {
  dead.state = ConnectionState::unclassified;
  connections_.forget_unused(dead);
}

void Incarnations::update_ports(std::uint16_t ring) {
  RingConnections& state = *rings_[ring];
  ports_.update_configured(ring);
  for (std::uint16_t child = 0; child < state.admitted.size(); ++child) {
    const std::optional<std::uint16_t> port = ports_.port_of({ring, child});
    if (Connection* connection = state.admitted[child]; connection != nullptr) {
      connection->port = port.value_or(connection->port);
      move_claim({ring, child}, connection->port);
    }
    if (current_->rings()[ring].is_parent(child)) {
      continue; // its hello's result does not wait
    }
    for (WaitingHello& hello : state.hellos.of(child)) {
      if (hello.frame != nullptr && port.value_or(hello.frame->ingress) != hello.frame->ingress) {
        give_up(ring, hello, DropReason::wrong_port);
      }
    }
  }
}

/// What the switch says to the sender leaves by this port from now on.
void Incarnations::move_claim(const ring::RingChild& sender, std::uint16_t port) {
  recovery::Flow& flow = flow_of(sender);
  if (flow.claim == 0) {
    return;
  }
  claims_.remove(flow.claim);
  const wire::IpAddress& source = current_->source_of(current_->pair_of(sender));
  flow.claim = claims_.name_of(source, flow.own_qp, port);
  claims_.add(flow.claim);
}

bool Incarnations::speaks_by(const ring::RingChild& child, std::uint16_t port) const {
  if (current_->rings()[child.ring].is_parent(child.child)) {
    return ports_.port_of(child) == port;
  }
  const auto came_by_it = [port](const WaitingHello& hello) {
    return hello.frame != nullptr && hello.frame->ingress == port;
  };
  return ports_.port_of(child) == port ||
         std::ranges::any_of(rings_[child.ring]->hellos.of(child.child), came_by_it);
}

void Incarnations::set_aging(std::uint64_t milliseconds) {
  aging_ = milliseconds;
  connections_.set_aging(milliseconds);
}

void Incarnations::reset(std::uint16_t ring) {
  end_incarnation(ring);
  rings_[ring]->epoch.reset();
  give_up_all(ring, DropReason::ring_reset);
}

void Incarnations::drain(std::uint16_t ring, std::uint64_t now) {
  RingConnections& state = *rings_[ring];
  if (!state.draining_since) {
    state.draining_since = now;
    give_up_all(ring, DropReason::ring_draining);
  }
}

std::uint64_t Incarnations::last_request(std::uint16_t ring) const {
  const RingConnections& state = *rings_[ring];
  std::uint64_t last = state.greeted_at;
  for (const Connection* connection : state.admitted) {
    last = std::max(last, connection == nullptr ? 0 : connection->last_seen);
  }
  return last;
}

RingConnections Incarnations::withdraw(std::uint16_t ring) {
  end_incarnation(ring);
  give_up_all(ring, DropReason::ring_withdrawn);
  RingConnections state = std::move(*rings_[ring]);
  rings_[ring].reset();
  spare_children_ += static_cast<std::uint32_t>(state.admitted.size());
  return state;
}

void Incarnations::give_up(std::uint16_t ring, WaitingHello& hello, DropReason reason) {
  const WaitingHello taken = rings_[ring]->hellos.take(hello);
  given_up_.push_back({taken.frame, ring, reason});
  if (taken.claim != 0) {
    claims_.remove(taken.claim);
  }
  assert(taken.connection->hellos != 0);
  --taken.connection->hellos;
  connections_.forget_unused(*taken.connection);
}

void Incarnations::give_up_all(std::uint16_t ring, DropReason reason) {
  give_up_if(ring, reason, [](const WaitingHello&) { return true; });
}

template <typename Goes>
void Incarnations::give_up_if(std::uint16_t ring, DropReason reason, Goes&& goes) {
  RingConnections& state = *rings_[ring];
  const auto children = static_cast<std::uint16_t>(state.beginning.size());
  for (std::uint16_t child = 0; child < children && state.hellos.size() != 0; ++child) {
    for (WaitingHello& hello : state.hellos.of(child)) {
      if (hello.frame != nullptr && goes(hello)) {
        give_up(ring, hello, reason);
      }
    }
  }
}

void Incarnations::give_up_overtaken(const Frame& frame,
                                     const std::optional<std::uint32_t>& epoch) {
  if (!wire::icrc_is_valid(frame)) {
    return;
  }
  for (const ring::RingChild& sender : current_->senders(frame.pair)) {
    if (!has(sender.ring) || current_->rings()[sender.ring].is_parent(sender.child)) {
      continue;
    }
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

std::span<const GivenUp> Incarnations::take_given_up() {
  handed_over_.clear();
  std::swap(handed_over_, given_up_);
  return handed_over_;
}

std::uint64_t Incarnations::waiting_hellos() const {
  std::uint64_t hellos = 0;
  for (const auto& state : rings_) {
    hellos += state ? state->hellos.size() : 0;
  }
  return hellos;
}

ChildStatus Incarnations::status_of(std::uint16_t ring, std::uint16_t child) const {
  const RingConnections& state = *rings_[ring];
  const bool is_parent = current_->rings()[ring].is_parent(child);
  ChildStatus status{.waiting_hellos = is_parent ? 0 : state.hellos.waiting_of(child),
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
