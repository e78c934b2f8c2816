// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_owners.hpp"
#include "conn/connection_table.hpp"
#include "conn/foreign_sessions.hpp"
#include "conn/incarnation.hpp"
#include "conn/message_history.hpp"
#include "conn/opening.hpp"
#include "conn/port_bindings.hpp"
#include "conn/queue_pair_claims.hpp"
#include "conn/verdict.hpp"
#include "conn/waiting_hellos.hpp"
#include "frame/frame.hpp"
#include "program/loaded_operators.hpp"
#include "recovery/flow.hpp"
#include "ring/current.hpp"
#include "ring/current_rings.hpp"
#include "weir/reasons.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::conn {

/// One child's connection as a person would ask for it.
struct ChildStatus {
  bool connected = false;
  std::uint32_t qp = 0;
  std::uint64_t newest_message = 0;
  std::uint64_t packets = 0;
  std::uint64_t last_seen = 0; // milliseconds; of a connected one
  std::uint32_t waiting_hellos = 0;
  recovery::FlowCounters recovery;
};

/// A waiting hello that will get no answer. The caller owns its frame again.
struct GivenUp {
  frame::Frame* frame;
  std::uint16_t ring;
  DropReason reason;
};

/// A connection of a ring's incarnation, and what belongs to it. Valid until the set of rings
/// changes; the connection itself may end before.
struct LiveConnection {
  Connection* connection = nullptr;
  MessageHistory* history = nullptr;
  recovery::Flow* flow = nullptr;
  const std::uint32_t* session = nullptr; // of the ring's incarnation
};

/// An operator that an incarnation has agreed on (docs/protocol.md §12).
struct RunOperator {
  std::uint8_t number = 0; // as messages name it; 0: none
  const program::Operator* by = nullptr;
  bool has_loops_alone = false; // its kernel was off before

  /// Whether its kernel has given other bits than its loops, in this incarnation perhaps.
  bool fails() const { return by != nullptr && !has_loops_alone && by->disagrees(); }
};

using CurrentOperators = ring::Current<program::LoadedOperators>;

/// What is known of the connections of one ring and of their incarnation. It takes time to make and
/// to free.
class RingConnections {
 public:
  explicit RingConnections(const ring::Ring& ring);

 private:
  friend class Incarnations;

  std::optional<Incarnation> incarnation;
  std::uint32_t session = 0;
  std::uint32_t parent_session = 0;   // X: that the switch above has given out
  std::optional<std::uint32_t> epoch; // of the last incarnation; none after a reset
  RetiredNonces retired;
  WaitingHellos hellos;
  std::uint64_t greeted_at = 0;                // milliseconds: a hello that waits came, or again
  std::optional<std::uint64_t> draining_since; // milliseconds; none: new incarnations may begin
  std::vector<wire::OperatorEntry> ungranted;  // that all hellos of the incarnation name
  std::optional<Incarnation> complete;         // its hellos are all there
  std::vector<frame::Frame*> beginning;        // begin()'s answer, by child
  std::vector<MessageRecord> records;          // a history of 2N for each sender
  std::vector<MessageHistory> histories;       // by sender
  std::vector<Connection*> admitted;           // by sender; nullptr: none
  std::vector<recovery::Flow> flows;           // by sender
};

/// The lives of the incarnations of one worker's rings (docs/protocol.md §2a): their hellos wait,
/// they begin with admitted connections, drain and end. Also the connection table and what belongs
/// to each connection. All times are milliseconds of one clock.
class Incarnations {
 public:
  struct Settings {
    SessionSource sessions = SessionSource::counting_from(1);
    std::uint32_t plain_entries = 0;  // room for queue pairs that are not the rings'
    std::uint16_t ports = 0;          // among which that room is shared out
    std::uint32_t spare_children = 0; // of rings that adopt() may bring
    std::uint16_t spare_rings = 0;    // that adopt() may bring without moving the others' state
    std::uint64_t aging = 600'000;    // milliseconds
    HashKey hash_key;
    // Shared by the whole switch; they outlive the worker.
    ForeignSessions* foreign_sessions = nullptr;
    QueuePairClaims* claims = nullptr;
    PortBindings* ports_of_members = nullptr;    // nullptr: there is one worker, with its own
    ConnectionOwners* owners = nullptr;          // nullptr: there is one worker
    ConnectionOwners::Worker worker = 0;         // its number among them
    const CurrentOperators* operators = nullptr; // nullptr: it never has any
  };

  /// `rings` are the indices of those that this worker owns; `current` outlives this object.
  Incarnations(const ring::CurrentRings& current, const std::vector<std::uint16_t>& rings,
               const Settings& settings);

  /// Children and parents of these rings, and of those that adopt() may bring.
  static std::uint32_t children_of(const ring::RingSet& set,
                                   const std::vector<std::uint16_t>& rings,
                                   const Settings& settings);

  // The life of an incarnation.

  /// A hello, acceptable in itself, that names another incarnation than the one that runs. On
  /// `wait`, `climb` and `begin` its frame is kept. Call take_given_up() afterwards.
  Verdict greet(const Opening& opening, std::uint64_t now);

  /// The same for a hello's result from the switch above. On `descend` its frame is the caller's
  /// for begin_below().
  Verdict greet_from_above(const Opening& total, std::uint64_t now);

  /// After Step::begin: the old incarnation ends, the new one's connections are admitted, a session
  /// is drawn. Returns its hellos by child, the caller's again, which are to contribute message 0
  /// next (hello_verdict).
  std::span<frame::Frame* const> begin(std::uint16_t ring, std::uint64_t now);

  /// The same after Step::descend, with the frame of that verdict: the connection from the switch
  /// above is admitted too, and its session is that of all that goes up.
  std::span<frame::Frame* const> begin_below(frame::Frame& total, const ring::RingChild& parent,
                                             std::uint64_t now);

  /// The last child's hello of the complete set that is to climb to the switch above, time and
  /// again: the newest one. nullptr when there is none. Only for a ring with a parent.
  WaitingHello* climbing(std::uint16_t ring) { return rings_[ring]->hellos.newest_complete(); }

  const WaitingHello* climbing(std::uint16_t ring) const {
    return rings_[ring]->hellos.newest_complete();
  }

  /// The table of operators that goes up for such a set: what all its hellos name alike, and this
  /// switch has for the ring.
  wire::OperatorTable climbing_operators(std::uint16_t ring, const WaitingHello& last) const {
    return agreed_operators(ring, last.incarnation);
  }

  /// Whether the switch keeps the sender of a waiting hello alive (docs/protocol.md §11.5).
  bool is_awaited(const ring::RingChild& sender, const WaitingHello& hello);

  /// The contribution that a sender's hello makes once its incarnation has begun.
  Verdict hello_verdict(const ring::RingChild& sender);

  /// Retires the incarnation, forgets the epoch, gives up waiting hellos.
  void reset(std::uint16_t ring);

  /// Gives up waiting hellos, and refuses those that would begin a new incarnation from now on. The
  /// running one goes on. Does nothing the second time.
  void drain(std::uint16_t ring, std::uint64_t now);

  /// The same as reset() for good, and hands the ring's state out. The ring leaves the set before
  /// the next packet comes; its places for connections are free again.
  RingConnections withdraw(std::uint16_t ring);

  /// Takes one ring more, which the current set has by now and for which there is room.
  void adopt(std::uint16_t ring, RingConnections connections);

  /// For so many children of further rings there are places.
  std::uint32_t spare_children() const { return spare_children_; }

  /// The current set has other ports for this ring's members. Live connections go on, by these
  /// ports; hellos that wait and came by another one are given up.
  void update_ports(std::uint16_t ring);

  /// For queue pairs without a ring that come, speak or die from now on.
  void set_aging(std::uint64_t milliseconds);

  std::uint64_t aging() const { return aging_; }

  /// Gives up hellos that wait on the packet's connection at a lower PSN, and came by its port:
  /// their sender has gone on. `epoch` is from the packet's INA header, if it has one.
  void give_up_overtaken(const frame::Frame& frame, const std::optional<std::uint32_t>& epoch);

  /// Hellos that were given up since the last call. Valid until the next packet.
  std::span<const GivenUp> take_given_up();

  bool has_given_up() const { return !given_up_.empty(); }

  // What is known of a ring. `ring` is one of this worker's, and not withdrawn.

  /// Whether it is.
  bool has(std::uint16_t ring) const { return ring < rings_.size() && rings_[ring].has_value(); }

  const std::optional<Incarnation>& incarnation_of(std::uint16_t ring) const {
    assert(has(ring));
    return rings_[ring]->incarnation;
  }

  std::uint32_t session_of(std::uint16_t ring) const { return rings_[ring]->session; }

  /// Those of the running incarnation.
  std::span<const RunOperator> operators_of(std::uint16_t ring) const {
    return operators_of_runs_[ring];
  }

  /// Those of the running incarnation that all its hellos name, and that this switch does not
  /// grant.
  std::span<const wire::OperatorEntry> ungranted_operators_of(std::uint16_t ring) const {
    return rings_[ring]->ungranted;
  }

  /// nullptr: the incarnation has none of this number.
  const program::Operator* operator_named(std::uint16_t ring, Operation number) const {
    for (const RunOperator& one : operators_of_runs_[ring]) {
      if (one.number == static_cast<std::uint8_t>(number)) {
        return one.by;
      }
    }
    return nullptr;
  }

  bool has_failing_operator(std::uint16_t ring) const {
    return std::ranges::any_of(operators_of_runs_[ring], &RunOperator::fails);
  }

  /// Whether the ring's incarnation has the operator, or a set of hellos that has climbed.
  bool uses(std::uint16_t ring, const program::Digest& digest) const;

  /// That messages of this sender must have: this switch's own, or that of the one above.
  std::uint32_t session_from(const ring::RingChild& sender) const {
    const RingConnections& ring = *rings_[sender.ring];
    return current_->rings()[sender.ring].is_parent(sender.child) ? ring.parent_session
                                                                  : ring.session;
  }

  /// What the switch writes into the sums that leave on the sender's connection.
  wire::SumStamp stamp_for(const ring::RingChild& sender) const;

  /// Since when the ring drains, in milliseconds; none: it does not.
  const std::optional<std::uint64_t>& draining_since(std::uint16_t ring) const {
    return rings_[ring]->draining_since;
  }

  /// When a packet last came on a connection of the ring's incarnation, or a hello that waits, in
  /// milliseconds. Refused hellos do not count.
  std::uint64_t last_request(std::uint16_t ring) const;

  WaitingHellos& waiting_hellos_of(std::uint16_t ring) { return rings_[ring]->hellos; }

  const WaitingHellos& waiting_hellos_of(std::uint16_t ring) const { return rings_[ring]->hellos; }

  /// Waiting hellos of all rings; each holds a frame.
  std::uint64_t waiting_hellos() const;

  // What is known of a connection of a ring.

  /// Of a sender whose packet has just been called a contribution.
  LiveConnection live_connection_of(const ring::RingChild& sender) {
    RingConnections& ring = *rings_[sender.ring];
    return {ring.admitted[sender.child], &ring.histories[sender.child], &ring.flows[sender.child],
            &ring.session};
  }

  recovery::Flow& flow_of(const ring::RingChild& sender) {
    assert(has(sender.ring) && sender.child < rings_[sender.ring]->flows.size());
    return rings_[sender.ring]->flows[sender.child];
  }

  const recovery::Flow& flow_of(const ring::RingChild& sender) const {
    return rings_[sender.ring]->flows[sender.child];
  }

  /// By sender.
  std::span<recovery::Flow> flows_of(std::uint16_t ring) { return rings_[ring]->flows; }

  MessageHistory& history_of(const ring::RingChild& sender) {
    return rings_[sender.ring]->histories[sender.child];
  }

  ChildStatus status_of(std::uint16_t ring, std::uint16_t child) const;

  /// How many children and parents the ring has here.
  std::size_t senders_of(std::uint16_t ring) const { return rings_[ring]->flows.size(); }

  /// The admitted connection whose acknowledgements these are: packets of this pair to this queue
  /// pair.
  std::optional<ring::RingChild> sender_acknowledged_by(const frame::Frame& answer);

  /// As the packets name it that acknowledge what the sender has sent.
  QueuePair answers_to(const ring::RingChild& sender) const;

  /// Whether the sender told its queue pair, and the switch may answer in its receiver's name.
  bool may_answer(const ring::RingChild& sender) const;

  bool is_sole_claim(std::uint64_t claim) const { return claims_.is_sole(claim); }

  bool is_claimed(std::uint64_t claim) const { return claims_.is_claimed(claim); }

  // What is known of all connections.

  ConnectionTable& connections() { return connections_; }

  const ConnectionTable& connections() const { return connections_; }

  const PortBindings& ports() const { return ports_; }

  /// Whether leave_moved() has something to do.
  bool has_moved() const { return owners_ != nullptr && owners_->has_moved(worker_); }

  /// Lets the connections die that rings of other workers have admitted.
  void leave_moved(std::uint64_t now);

  /// Whether the child is bound to the port, or a hello of it waits that came by it.
  bool speaks_by(const ring::RingChild& child, std::uint16_t port) const;

  /// A live connection is its ring's no longer: it is dead.
  void leave_ring(Connection& connection);

  /// The queue pair of a dead connection has become plain.
  void forget_ring_of(Connection& dead);

 private:
  /// Of the live connections between two neighbours whose senders told this queue pair.
  struct Requester {
    ring::RingChild sender; // one of them
    std::uint16_t claimants = 0;
  };

  using Sets = std::array<Incarnation, WaitingHellos::kPerChild>;

  static ConnectionTable::Settings table_settings(const ring::RingSet& set,
                                                  const std::vector<std::uint16_t>& rings,
                                                  const Settings& settings);
  void take(std::uint16_t ring, RingConnections connections);
  std::optional<DropReason> why_not_taken(const Opening& opening) const;
  static std::optional<DropReason> why_not_waiting(RingConnections& ring, const Opening& opening);
  const program::Operator* granted(std::uint16_t ring, const wire::OperatorEntry& entry) const;
  wire::OperatorTable asked_operators(std::uint16_t ring, const Incarnation& incarnation) const;
  wire::OperatorTable granted_of(std::uint16_t ring, wire::OperatorTable table) const;
  wire::OperatorTable agreed_operators(std::uint16_t ring, const Incarnation& incarnation) const;
  void note_ungranted(std::uint16_t ring, const wire::OperatorTable& asked);
  void agree_on(std::uint16_t ring, const wire::OperatorTable& operators);
  bool has_all(const Opening& total) const;
  std::uint64_t claim_of(const frame::Frame& hello) const;
  Verdict wait(RingConnections& ring, const Opening& opening, std::uint64_t now);
  void admit(const WaitingHello& hello, const ring::RingChild& sender, std::uint64_t now);
  void begin_flow(const WaitingHello& hello, const ring::RingChild& sender, std::uint64_t now);
  void end_flow(const ring::RingChild& sender);
  void name_requester(const ring::RingChild& sender);
  bool is_only_requester(const ring::RingChild& sender) const;
  void move_claim(const ring::RingChild& sender, std::uint16_t port);
  void end_incarnation(std::uint16_t ring);
  void admit_parent(frame::Frame& total, const ring::RingChild& parent, std::uint64_t now);
  void give_up(std::uint16_t ring, WaitingHello& hello, DropReason reason);
  void give_up_all(std::uint16_t ring, DropReason reason);
  Sets sets_that_stay(std::uint16_t ring);
  template <typename Goes>
  void give_up_if(std::uint16_t ring, DropReason reason, Goes&& goes);

  const ring::CurrentRings& current_;
  SessionSource sessions_;
  QueuePairClaims& claims_;
  std::uint64_t aging_;
  ConnectionTable connections_;
  BucketTable<Requester> requesters_;     // by pair and own queue pair of the live senders
  std::optional<PortBindings> own_ports_; // of the only worker
  PortBindings& ports_;
  ConnectionOwners* owners_; // nullptr: there is one worker
  ConnectionOwners::Worker worker_;
  const CurrentOperators* operators_;
  std::uint32_t spare_children_;                      // for whose connections there is room
  std::vector<std::optional<RingConnections>> rings_; // by index; set for this worker's
  std::vector<GivenUp> given_up_;
  std::vector<GivenUp> handed_over_; // result of take_given_up()
  // By index; of the incarnation. Apart from the rings' state, which packets look at.
  std::vector<std::array<RunOperator, kMostOperators>> operators_of_runs_;
};

} // namespace weir::conn
