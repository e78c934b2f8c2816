// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/incarnations.hpp"
#include "stage/fair_queue.hpp"
#include "stage/farewells.hpp"
#include "stage/forward.hpp"
#include "stage/ring_state.hpp"
#include "stage/schedule.hpp"
#include "stage/turns.hpp"

namespace weir::stage {

class Pipeline;

/// Repairs losses between the hosts and the switch, so that one lost packet costs one repeat
/// (docs/protocol.md §9). Asks the sender whose packet is missing, sends results again from the
/// cache, and ends repeats. What it says in a receiver's name never exceeds what that receiver has
/// acknowledged (protocol I9).
class Recover {
  using Flow = recovery::Flow;

 public:
  explicit Recover(Pipeline& pipeline);

  /// There are rings with larger indices.
  void resize(std::size_t rings) { turns_.resize(rings); }

  /// The sender's hello has been admitted.
  void begin(const ring::RingChild& sender, const frame::Frame& hello, frame::Instant now);

  /// The ring holds nothing any more.
  void end(std::uint16_t ring);

  /// A verified contribution is in its slot.
  [[gnu::always_inline]] void came(const frame::Frame& frame, const conn::Verdict& verdict,
                                   frame::Instant now) {
    Flow& flow = *verdict.flow;
    const std::uint32_t psn = frame.packet.psn;
    rings_[verdict.ring]->news_at_ns = now.ns;
    if (flow.heard(psn, now.ns)) [[unlikely]] {
      expect_now(verdict.ring, now);
    }
    if (frame.packet.opcode.position != wire::Position::middle) {
      recovery::keep_headers(verdict.record->headers, frame);
    }
    schedule_.expect(verdict.ring, now.ns + recovery::kTimerFloor); // not later than any timer
    if (flow.is_next(psn)) [[likely]] {
      flow.came_next(psn);
    } else {
      came_out_of_order({verdict.ring, verdict.child}, psn, now);
    }
  }

  /// A verified contribution was in its slot already.
  void came_again(const frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now);

  /// A packet whose message's FIRST was lost. Ends the frame.
  void came_without_first(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now);

  /// A repeat of a packet whose result has left. Ends the frame.
  void swallow(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now);

  /// A response from one ring neighbour to another. Sends it on, or mends what it asks for.
  void accept_response(frame::Frame& frame, frame::Instant now);

  /// Asks the sender to go back to the lowest PSN that its receiver has not acknowledged: by a NAK,
  /// and a rank later by RNR NAKs. Does nothing while it waits out an RNR NAK, or too soon after
  /// the last one.
  void ask(const ring::RingChild& sender, frame::Instant now);

  /// When the sender may be asked next, in ns.
  std::uint64_t may_ask_at(const ring::RingChild& sender) const;

  /// When all that the receiver has not acknowledged may be sent again next because somebody wants
  /// it, in ns.
  std::uint64_t may_answer_at(const ring::RingChild& sender) const;

  /// Sends the receiver again all that it has not acknowledged, because it or its sender wants it:
  /// now, or when the last answer is a round trip old (R3).
  void answer(const ring::RingChild& sender, frame::Instant now);

  /// The same because no acknowledgement has come in time.
  void resend_late(const ring::RingChild& sender, frame::Instant now);

  /// Sends some of the results that are to leave again. Rings take turns.
  void resend_some(frame::Instant now);

  /// How a sender has waited, and how it is kept alive.
  struct Wait {
    ring::KeepAlive keep_alive{}; // not off
    std::uint64_t ns = 0;
  };

  /// Tells the sender again what its receiver has acknowledged. Changes nothing at the sender but
  /// its timer.
  void keep_alive(const ring::RingChild& sender, const Wait& wait, frame::Instant now);

  /// The same for a sender whose hello waits.
  void keep_alive(const ring::RingChild& sender, const conn::WaitingHello& hello, const Wait& wait,
                  frame::Instant now);

  /// Whether the ring's last news is no older than its patience.
  bool is_patient(std::uint16_t ring, frame::Instant now) const;

  /// Whether a port of the ring that leads to another switch is down. Then this one is silent, so
  /// that the hosts' own timers tell (docs/protocol.md §11.7).
  bool is_cut_off(std::uint16_t ring) const;

  /// Tells the senders that their work cannot go on.
  void refuse_all(std::uint16_t ring, frame::Instant now);

  /// The incarnation ends: notes what its senders are told when they send again. Nobody is told
  /// unasked, since its queue pair may be a new process's by now.
  void take_leave(std::uint16_t ring, wire::NakCode why, frame::Instant now);

  /// A packet between ring neighbours has no effect. Tells its sender if the sender's incarnation
  /// is over (docs/protocol.md §2a).
  void tell_if_ended(frame::Frame& frame, frame::Instant now);

  /// Whether the switch may speak to the sender in its receiver's name: within patience, not where
  /// somebody lies about queue pairs, and not while the ring is cut off.
  bool may_speak(const ring::RingChild& sender, frame::Instant now) const;

 private:
  /// Results that leave again at one time, from all rings together, in about 60 us. With fewer, the
  /// results that leave anew would overtake the rest of a usual window.
  static constexpr unsigned kResendsPerLook = 256;
  static constexpr unsigned kResendsPerTurn = 8;       // of one connection
  static constexpr std::uint64_t kResendPause = 1'000; // ns; a round of the worker takes longer

  static bool is_waiting_for_repeat(const Flow& flow);
  static std::uint64_t may_ask_rank_at(const Flow& flow);
  static std::uint64_t may_ask_switch_at(const Flow& flow);
  bool ask_rank(const ring::RingChild& sender, frame::Instant now);
  bool ask_switch(const ring::RingChild& sender, frame::Instant now);
  void raise_again(const ring::RingChild& sender, frame::Instant now);

  const ring::Ring& ring_of(const ring::RingChild& sender) const {
    return current_->rings()[sender.ring];
  }

  ring::Leg leg_of(const ring::RingChild& sender) const {
    return ring_of(sender).leg_of(sender.child);
  }

  bool is_answered_already(const ring::RingChild& sender, frame::Instant now) const;
  void mend(const ring::RingChild& sender, frame::Instant now);
  void acknowledge_again(const ring::RingChild& sender, frame::Instant now);
  frame::Frame* compose(const recovery::AnswerTemplate& answers, std::uint8_t syndrome,
                        std::uint32_t unacknowledged);
  frame::Frame* compose(const ring::RingChild& sender, std::uint8_t syndrome);
  bool say(const ring::RingChild& sender, std::uint8_t syndrome, frame::Instant now);
  bool may_be_told(const ring::RingChild& sender) const;
  Farewell farewell_of(const ring::RingChild& sender, wire::NakCode why, frame::Instant now) const;
  bool names_sender(const Farewell& farewell) const;
  bool is_from_leaver(const Farewell& farewell, frame::Frame& frame);
  void tell(Farewell& farewell, frame::Instant now);
  void acknowledge_again(Farewell& farewell, frame::Instant now);
  bool say(const Farewell& farewell, std::uint8_t syndrome, frame::Instant now);
  void see_late(const frame::Frame& frame, const wire::Aeth& aeth);
  void send_answer(frame::Frame& frame, const ring::RingChild& sender, std::uint8_t syndrome,
                   frame::Instant now);
  void send_own(frame::Frame& frame, frame::Instant now, const frame::TraceRecord& record,
                std::optional<std::uint16_t> port);
  void resend(const ring::RingChild& sender, frame::Instant now);
  void renew_allowance(frame::Instant now);
  unsigned take_turn(std::uint16_t ring, frame::Instant now);
  unsigned resend_from_next(const ring::RingChild& sender, unsigned most, frame::Instant now);
  bool send_last_again(const ring::RingChild& sender, frame::Instant now);
  bool send_again(const ring::RingChild& sender, const conn::MessageRecord& record,
                  std::uint32_t packet, frame::Instant now);
  bool is_within_reach(const ring::RingChild& sender, std::uint32_t psn) const;
  void expect_now(std::uint16_t ring, frame::Instant now);
  void hear(const ring::RingChild& sender, const frame::Frame& frame, frame::Instant now);
  void came_out_of_order(const ring::RingChild& sender, std::uint32_t psn, frame::Instant now);
  void advance(const ring::RingChild& sender, std::uint32_t psn);
  void note_gap(const ring::RingChild& sender, std::uint32_t psn, frame::Instant now);
  void see_ack(frame::Frame& frame, const ring::RingChild& sender, const wire::Aeth& aeth,
               frame::Instant now);
  void see_rnr_nak(frame::Frame& frame, const ring::RingChild& sender, const wire::Aeth& aeth,
                   frame::Instant now);
  void see_nak(frame::Frame& frame, const ring::RingChild& sender, const wire::Aeth& aeth,
               frame::Instant now);
  bool take_acknowledgement(const frame::Frame& frame, const ring::RingChild& sender,
                            const wire::Aeth& aeth, std::uint32_t next, frame::Instant now);
  void send_on(frame::Frame& frame, const std::optional<std::uint16_t>& port, frame::Instant now);
  void send_on(frame::Frame& frame, const ring::RingChild& sender, frame::Instant now);
  void drop(frame::Frame& frame, std::uint16_t ring, DropReason reason, frame::Instant now);

  const ring::CurrentRings& current_;
  const l2::PortSet& ports_down_;
  conn::Incarnations& incarnations_;
  RingStates& rings_;
  Schedule& schedule_;
  FairQueue& lines_;
  Farewells& farewells_;
  Forward& forward_;
  Turns turns_;                  // rings whose results leave again
  std::uint64_t allowed_at_ = 0; // ns: the time that allowed_ is for
  unsigned allowed_ = 0;         // results that may leave again at this time
};

} // namespace weir::stage
