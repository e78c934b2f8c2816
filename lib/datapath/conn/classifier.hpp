// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_table.hpp"
#include "conn/foreign_sessions.hpp"
#include "conn/incarnation.hpp"
#include "conn/magic_rule.hpp"
#include "conn/message_history.hpp"
#include "conn/opening.hpp"
#include "conn/port_bindings.hpp"
#include "conn/queue_pair_claims.hpp"
#include "conn/waiting_hellos.hpp"
#include "frame/frame.hpp"
#include "recovery/flow.hpp"
#include "ring/current_rings.hpp"
#include "weir/reasons.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace weir::conn {

/// What the switch does with a RoCE packet between ring neighbours.
struct Verdict {
  enum class Step : std::uint8_t {
    forward,    // foreign, plain, or no request
    interleave, // plain, on a ring's connection: leaves in its turn or not at all
    repeat,     // its result has left already
    gap,        // its FIRST was lost: drop it, and ask its sender for it
    contribute, // goes to slot record->first_slot + packet of the ring
    wait,       // a hello; the classifier keeps it
    begin,      // the last hello of its incarnation; call begin() next
    refuse,     // a hello that its ring does not take: drop it
    drop,
  };
  Step step = Step::forward;
  DropReason drop{};                      // for refuse and drop
  std::optional<ForeignReason> foreign{}; // for forward: an INA header that belongs to no ring here
  std::uint16_t ring = 0;                 // for all but forward and drop
  std::uint16_t child = 0;                //
  MessageRecord* record = nullptr;        // for contribute
  std::uint32_t packet = 0;               // k, likewise
  recovery::Flow* flow = nullptr;         // likewise
};

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

/// Classifies packets for the rings of one worker (docs/protocol.md §3): incarnations, connection
/// table, message histories. All times are milliseconds of one clock.
class Classifier {
 public:
  struct Settings {
    SessionSource sessions = SessionSource::counting_from(1);
    std::uint32_t plain_entries = 0;  // room for queue pairs that are not the rings'
    std::uint16_t ports = 0;          // among which that room is shared out
    std::uint32_t spare_children = 0; // of rings that adopt() may bring
    std::uint16_t spare_rings = 0;    // that adopt() may bring without moving the others' state
    std::uint64_t aging = 600'000;    // milliseconds
    HashKey hash_key;
    // Shared by the whole switch; they outlive the classifier.
    ForeignSessions* foreign_sessions = nullptr;
    QueuePairClaims* claims = nullptr;
  };

  /// What a classifier knows about one ring. It takes time to make and to free.
  class RingState {
   public:
    explicit RingState(const ring::Ring& ring);

   private:
    friend class Classifier;

    std::optional<Incarnation> incarnation;
    std::uint32_t session = 0;
    std::optional<std::uint32_t> epoch; // of the last incarnation; none after a reset
    RetiredNonces retired;
    WaitingHellos hellos;
    std::uint64_t greeted_at = 0;                // milliseconds: a hello that waits came, or again
    std::optional<std::uint64_t> draining_since; // milliseconds; none: new incarnations may begin
    std::optional<Incarnation> complete;         // its hellos are all there
    std::vector<frame::Frame*> beginning;        // begin()'s answer, by child
    std::vector<MessageRecord> records;          // H histories of 2N
    std::vector<MessageHistory> histories;       // by child
    std::vector<Connection*> admitted;           // by child; nullptr: none
    std::vector<recovery::Flow> flows;           // by child
  };

  /// Does a filling slot of the ring hold a packet of the child?
  using IsHeld = std::function<bool(const ring::RingChild&)>;

  /// `rings` are the indices of those that this worker owns; `current` outlives the classifier.
  Classifier(const ring::CurrentRings& current, const std::vector<std::uint16_t>& rings,
             const Settings& settings, IsHeld is_held);

  /// Children of these rings, and of those that adopt() may bring.
  static std::uint32_t children_of(const ring::RingSet& set,
                                   const std::vector<std::uint16_t>& rings,
                                   const Settings& settings);

  /// For RoCE frames whose `pair` is not 0. Verifies the ICRC of a FIRST or ONLY; other packets of
  /// a contribution may come unverified. On `wait` and `begin` the classifier keeps the frame. Call
  /// take_given_up() afterwards.
  Verdict classify(frame::Frame& frame, std::uint64_t now);

  /// After Step::begin: the old incarnation ends, the new one's connections are admitted, a session
  /// is drawn. Returns its hellos by child, the caller's again, which are to contribute message 0
  /// next (hello_verdict).
  std::span<frame::Frame* const> begin(std::uint16_t ring, std::uint64_t now);

  /// The contribution that a child's hello makes once its incarnation has begun.
  Verdict hello_verdict(const ring::RingChild& sender);

  /// Of a sender whose packet classify() has just called a contribution.
  LiveConnection live_connection_of(const ring::RingChild& sender) {
    RingState& state = *rings_[sender.ring];
    return {state.admitted[sender.child], &state.histories[sender.child],
            &state.flows[sender.child], &state.session};
  }

  /// For so many children of further rings there are places.
  std::uint32_t spare_children() const { return spare_children_; }

  /// Takes one ring more, which the current set has by now and for which there is room.
  void adopt(std::uint16_t ring, RingState state);

  /// The current set has other ports for this ring's members. Live connections go on, by these
  /// ports; hellos that wait and came by another one are given up.
  void update_ports(std::uint16_t ring);

  /// For queue pairs without a ring that come, speak or die from now on.
  void set_aging(std::uint64_t milliseconds);

  /// Retires the incarnation, forgets the epoch, gives up waiting hellos.
  void reset(std::uint16_t ring);

  /// Gives up waiting hellos, and refuses those that would begin a new incarnation from now on. The
  /// running one goes on. Does nothing the second time.
  void drain(std::uint16_t ring, std::uint64_t now);

  /// Since when the ring drains, in milliseconds; none: it does not.
  const std::optional<std::uint64_t>& draining_since(std::uint16_t ring) const {
    return rings_[ring]->draining_since;
  }

  /// When a packet last came on a connection of the ring's incarnation, or a hello that waits, in
  /// milliseconds. Refused hellos do not count.
  std::uint64_t last_request(std::uint16_t ring) const;

  /// The same as reset() for good, and hands the ring's state out. The ring leaves the set before
  /// the next packet comes; its places for connections are free again.
  RingState withdraw(std::uint16_t ring);

  /// Hellos that were given up since the last call. Valid until the next classify().
  std::span<const GivenUp> take_given_up();

  bool has_given_up() const { return !given_up_.empty(); }

  /// Whether this worker has the ring, and it is not withdrawn. What follows is about such rings.
  bool has(std::uint16_t ring) const { return rings_[ring].has_value(); }

  const std::optional<Incarnation>& incarnation_of(std::uint16_t ring) const {
    return rings_[ring]->incarnation;
  }

  std::uint32_t session_of(std::uint16_t ring) const { return rings_[ring]->session; }

  recovery::Flow& flow_of(const ring::RingChild& sender) {
    return rings_[sender.ring]->flows[sender.child];
  }

  /// By child.
  std::span<recovery::Flow> flows_of(std::uint16_t ring) { return rings_[ring]->flows; }

  const recovery::Flow& flow_of(const ring::RingChild& sender) const {
    return rings_[sender.ring]->flows[sender.child];
  }

  MessageHistory& history_of(const ring::RingChild& sender) {
    return rings_[sender.ring]->histories[sender.child];
  }

  /// The admitted connection whose acknowledgements these are: packets of this pair to this queue
  /// pair.
  std::optional<ring::RingChild> sender_acknowledged_by(const frame::Frame& answer);

  /// Whether the sender told its queue pair, and the switch may answer in its receiver's name.
  bool may_answer(const ring::RingChild& sender) const;

  bool is_sole_claim(std::uint64_t claim) const { return claims_.is_sole(claim); }

  WaitingHellos& waiting_hellos_of(std::uint16_t ring) { return rings_[ring]->hellos; }

  const WaitingHellos& waiting_hellos_of(std::uint16_t ring) const { return rings_[ring]->hellos; }

  /// Waiting hellos of all rings; each holds a frame.
  std::uint64_t waiting_hellos() const;

  ChildStatus status_of(std::uint16_t ring, std::uint16_t child) const;

  const ConnectionTable& connections() const { return connections_; }

  const PortBindings& ports() const { return ports_; }

  /// Whether the child is bound to the port, or a hello of it waits that came by it.
  bool speaks_by(const ring::RingChild& child, std::uint16_t port) const;

 private:
  /// Of the live connections between two neighbours whose senders told this queue pair.
  struct Requester {
    ring::RingChild sender; // one of them
    std::uint16_t claimants = 0;
  };

  void take(std::uint16_t ring, RingState state);
  static ConnectionTable::Settings table_settings(const ring::RingSet& set,
                                                  const std::vector<std::uint16_t>& rings,
                                                  const Settings& settings);

  bool greets_unbound_ring(const frame::Frame& frame) const;
  Connection* look_up(frame::Frame& frame, const std::optional<std::uint32_t>& epoch,
                      std::uint64_t now);
  Verdict other_request(frame::Frame& frame, std::uint64_t now);
  Verdict start_of_message(frame::Frame& frame, std::uint64_t now);
  Verdict inside_message(frame::Frame& frame, std::uint64_t now);
  Verdict inside_ring_message(const frame::Frame& frame, const Connection& connection);
  Verdict plain_start(const frame::Frame& frame, Connection* connection, std::uint64_t now);
  Verdict foreign_start(const frame::Frame& frame, ForeignReason reason, Connection* connection,
                        std::uint64_t now);
  Verdict foreign_hello(const frame::Frame& frame, Connection* connection, std::uint64_t now);
  Verdict foreign_data(const frame::Frame& frame, Connection* connection);
  Verdict hello(const Opening& opening, Connection* connection, std::uint64_t now);
  std::optional<DropReason> why_not_taken(const Opening& opening) const;
  std::optional<DropReason> why_not_waiting(RingState& state, const Opening& opening);
  Verdict wait(RingState& state, const Opening& opening, std::uint64_t now);
  Verdict data_start(const Opening& opening, Connection* connection, std::uint64_t now);
  Verdict enter_history(const Opening& opening);
  std::uint64_t claim_of(const Opening& hello) const;
  std::optional<Verdict> repeated_start(const frame::Frame& frame, const wire::InaHeader& ina,
                                        Connection* connection, std::uint64_t now);
  void admit(const WaitingHello& hello, const ring::RingChild& sender, std::uint64_t now);
  void begin_flow(const WaitingHello& hello, const ring::RingChild& sender, std::uint64_t now);
  void end_flow(const ring::RingChild& sender);
  void name_requester(const ring::RingChild& sender);
  bool is_only_requester(const ring::RingChild& sender) const;
  void move_claim(const ring::RingChild& sender, std::uint16_t port);
  void end_incarnation(std::uint16_t ring);
  void leave_ring(Connection& connection);
  void forget_ring_of(Connection& dead);
  void take_out_overtaken(const frame::Frame& frame, const std::optional<std::uint32_t>& epoch);
  void give_up(std::uint16_t ring, WaitingHello& hello, DropReason reason);
  void give_up_all(std::uint16_t ring, DropReason reason);

  const ring::CurrentRings& current_;
  SessionSource sessions_;
  ForeignSessions& foreign_sessions_;
  QueuePairClaims& claims_;
  std::uint64_t aging_;
  IsHeld is_held_;
  ConnectionTable connections_;
  BucketTable<Requester> requesters_; // by pair and own queue pair of the live senders
  MagicRule magic_rule_;              // for pairs that carry only acknowledgements of rings
  PortBindings ports_;
  std::uint32_t spare_children_;                // for whose connections there is room
  std::vector<std::optional<RingState>> rings_; // by index; set for this worker's
  std::vector<GivenUp> given_up_;
  std::vector<GivenUp> handed_over_; // result of take_given_up()
};

/// The magic rule for strangers remembers as many queue pairs as the classifier does for
/// neighbours.
inline MagicRule::Settings magic_rule_settings(const Classifier::Settings& settings) {
  return {settings.plain_entries, settings.ports, settings.aging, settings.hash_key,
          settings.foreign_sessions};
}

} // namespace weir::conn
