// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "recovery/smoothed_time.hpp"
#include "wire/psn.hpp"

#include <cassert>
#include <cstdint>

namespace weir::recovery {

/// Times of the recovery, in nanoseconds.
inline constexpr std::uint64_t kTimerFloor = 60'000; // above the hosts' queueing
/// Before a round trip is measured. Ranks that are merely late are not to be asked (RFC 6298 §2.1).
inline constexpr std::uint64_t kFirstTimer = 1'000'000;
inline constexpr std::uint64_t kTimerGranularity = 8'000;
inline constexpr std::uint64_t kRnrWait = 15'000'000;       // after an RNR NAK of the switch
inline constexpr std::uint64_t kLongestPause = 100'000'000; // between two of them
inline constexpr std::uint32_t kMostResends = 5;            // without progress; then r must act
inline constexpr std::uint32_t kMostDoublings = 16;         // 60 us become 4 s
// The first pause between two answers to a switch, which asks T apart, or 60 us at least.
inline constexpr std::uint64_t kSwitchPause = kTimerFloor / 2;
inline constexpr std::uint64_t kLongestAnswerPause = 15'000'000; // below an ACK timeout
inline constexpr std::uint64_t kAckTimeoutUnit = 4096;           // IBTA §9.9
/// A requester tries so often (IBTA §9.7.5: three bits), or without end.
inline constexpr std::uint32_t kTries = 7;
/// A receiver that has taken this part of what was outstanding when it was answered is answered at
/// once again. With no less, it could have the window sent again for each packet that it takes.
inline constexpr std::int32_t kShareOfProgress = 8;

/// What the switch did about one connection. One lcore writes it.
struct FlowCounters {
  std::uint64_t naks = 0;        // asked the sender to repeat
  std::uint64_t rnr_naks = 0;    // asked it again
  std::uint64_t mended = 0;      // NAKs of the receiver that were answered from the cache
  std::uint64_t resent = 0;      // results sent again
  std::uint64_t resent_late = 0; // times that nobody had asked for them: no acknowledgement came
  std::uint64_t swallowed = 0;   // repeats that ended here
  std::uint64_t kept_alive = 0;  // duplicate acknowledgements for a sender that waits
  std::uint64_t hellos_kept_alive = 0; // likewise, while its hello waits
};

/// What a connection waits for whose sender's packet is missing.
enum class Awaited : std::uint8_t {
  end_of_wait,     // the sender waits out an RNR NAK
  repeat,          // the sender to go back, as the switch has asked
  lost_packet,     // the same, and the switch has not asked
  acknowledgement, // the receiver to acknowledge results that have left
  next_packet,     // the sender, which has nothing outstanding
};

/// What the switch knows about the sending and acknowledging on one connection of a ring, from rank
/// r to its successor (docs/protocol.md §9). `a` ≤ `s` ≤ `e`, in 24-bit serial arithmetic.
///
///          acknowledged    results that left    r's packets came    r has not sent, or it was lost
///   PSNs ... ─────────── a ───────────────── s ───────────────── e ──────────────────────────────
struct Flow {
  /// What the switch has done about the pass that the sender is in. A pass begins with a PSN that
  /// is not above the previous one.
  enum class Pass : std::uint8_t { nothing, acknowledged, resent };

  std::uint32_t next_in = 0;        // e
  std::uint32_t furthest_in = 0;    // behind the highest PSN that came; above e when one is missing
  std::uint32_t next_out = 0;       // s
  std::uint32_t unacknowledged = 0; // a
  std::uint32_t previous = 0;       // PSN that came last
  std::uint32_t own_qp = 0;         // the sender's; 0: it did not tell
  std::uint32_t asked_for = 0;      // e when the switch asked last
  std::uint32_t timed = 0;          // PSN whose acknowledgement is timed
  std::uint32_t resend_next = 0;    // the result to leave again next, while is_resending
  std::uint32_t enough = 0;         // a that ends the pauses, while answers != 0
  std::uint8_t ack_timeout = 0;     // exponent; 0: no keep-alive wanted
  bool is_live = false;
  bool is_timing = false;
  bool went_back = false;   // a pass has begun since the switch asked last
  bool is_own_pass = false; // the pass is the answer to what the switch asked
  Pass pass = Pass::nothing;
  std::uint8_t resends = 0;   // by the timer, since a moved
  std::uint8_t doublings = 0; // of the timer, since a round trip was measured
  std::uint8_t asks = 0;      // of the sender, since a moved: one NAK, then RNR NAKs
  std::uint8_t answers = 0; // to a receiver or sender that wants a … s-1 again, until a is `enough`
  bool is_resending : 1 = false;  // results leave again, some at each poll
  bool is_answer_due : 1 = false; // somebody wanted a … s-1 again, too soon
  bool had_no_buffer : 1 = false; // the receiver, since the last answer
  bool is_silenced : 1 = false;   // a timer has run out, and the switch may not speak
  std::uint64_t heard_at = 0;
  std::uint64_t progress_at = 0; // a moved, results began to be outstanding, or they were resent
  std::uint64_t timed_since = 0;
  std::uint64_t asked_at = 0;     // by NAK or RNR NAK
  std::uint64_t hushed_until = 0; // the sender waits out an RNR NAK
  std::uint64_t held_until = 0;   // likewise, and it was the receiver's
  std::uint64_t kept_alive_at = 0;
  std::uint64_t claim = 0; // conn::QueuePairClaims' name of <sender, own_qp>
  SmoothedTime round_trip;
  FlowCounters counters;

  /// Begins with the admitted hello, whose PSN is `psn`.
  void begin(std::uint32_t psn, std::uint32_t qp, std::uint8_t timeout_exponent,
             std::uint64_t now_ns);

  /// A packet with that PSN came, whatever becomes of it. Returns whether its sender has ended an
  /// RNR wait, so that what the wait held up is due.
  bool heard(std::uint32_t psn, std::uint64_t now_ns) {
    heard_at = now_ns;
    bool ends_wait = false;
    if (!wire::psn_before(previous, psn)) [[unlikely]] {
      ends_wait = goes_back(now_ns);
    }
    previous = psn;
    return ends_wait;
  }

  /// A pass begins. Returns whether that ends an RNR wait.
  bool goes_back(std::uint64_t now_ns);

  /// Whether the PSN follows those that came, and none is missing.
  bool is_next(std::uint32_t psn) const { return psn == next_in && !lacks_packets(); }

  /// Whether the packet before the next one was the last that came, in this instant.
  bool is_up_to_date(std::uint64_t now_ns) const {
    return heard_at == now_ns && wire::psn_add(previous, 1) == next_in;
  }

  /// Whether s ≤ e, and nothing came that is behind the furthest packet. (Not whether a ≤ s: s
  /// follows what leaves, and goes back if a sender's packets do not keep the order of their PSNs.)
  bool is_in_order() const {
    return !wire::psn_before(next_in, next_out) && !wire::psn_before(furthest_in, next_in);
  }

  /// A packet came whose PSN is_next(), while the flow is_up_to_date().
  void came_next(std::uint32_t psn) {
    previous = psn;
    next_in = furthest_in = wire::psn_add(psn, 1);
    assert(is_in_order());
  }

  /// The result with that PSN left for the first time. Returns whether the connection lacks packets
  /// no longer: its sender left them out, so they are missing no more.
  bool left(std::uint32_t psn, std::uint64_t now_ns) {
    assert(is_in_order());
    if (unacknowledged == next_out) {
      progress_at = now_ns;
    }
    next_out = wire::psn_add(psn, 1);
    if (wire::psn_before(next_in, next_out)) [[unlikely]] { // a sender that left out PSNs
      const bool lacked = lacks_packets();
      next_in = next_out;
      if (wire::psn_before(furthest_in, next_in)) {
        furthest_in = next_in;
      }
      assert(is_in_order());
      return lacked && !lacks_packets();
    }
    return false;
  }

  /// Starts to time the acknowledgement of a packet that asks for one.
  void time(std::uint32_t psn, std::uint64_t now_ns) {
    if (!is_timing) {
      is_timing = true;
      timed = psn;
      timed_since = now_ns;
    }
  }

  /// The receiver has all PSNs below `next`, which is in a … s.
  void acknowledge(std::uint32_t next, std::uint64_t now_ns);

  /// The switch has asked the sender to go back.
  void asked(std::uint64_t now_ns) {
    asked_at = now_ns;
    asked_for = next_in;
    went_back = false;
    asks += asks < UINT8_MAX ? 1 : 0;
  }

  /// Whether the result with that PSN, or a later one, has left.
  bool is_past(std::uint32_t psn) const { return wire::psn_before(psn, next_out); }

  /// Whether the PSN is one of a … s-1.
  bool is_unacknowledged(std::uint32_t psn) const {
    return !wire::psn_before(psn, unacknowledged) && is_past(psn);
  }

  bool lacks_packets() const { return next_in != furthest_in; }

  /// Whether an acknowledgement that moves a may make a timer run out sooner.
  bool may_hurry() const { return asks != 0 || doublings != 0 || is_silenced; }

  bool is_outstanding() const { return unacknowledged != next_out; }

  /// The receiver had no buffer at a … s, and its sender is to come again.
  bool is_held(std::uint64_t now_ns) const { return now_ns < held_until; }

  Awaited awaited(std::uint64_t now_ns) const;

  bool is_measured() const { return round_trip.timeout(kTimerGranularity) != 0; }

  /// The time from release to acknowledgement that is long enough, as measured.
  std::uint64_t round_trip_timer() const {
    const std::uint64_t measured = round_trip.timeout(kTimerGranularity);
    return measured == 0 ? kFirstTimer : std::max(measured, kTimerFloor);
  }

  /// T: the same, doubled by each resend until a round trip is measured again (Karn and Partridge,
  /// SIGCOMM'87).
  std::uint64_t timer() const { return round_trip_timer() << doublings; }

  /// When a receiver or a sender that wants a … s-1 again may get them: at once when a is `enough`.
  /// As often as a requester tries, answer_pause() after a moved or they left last, or at once
  /// where the sender has waited for a buffer. Then each pause is twice as long as the one before,
  /// and none is longer than the sender's ACK timeout: each of its tries is to bring them.
  std::uint64_t may_answer_at() const;

  /// The same for a switch. It asks at times of its own, each of which counts, and waits longer
  /// each time; so one that asks as it should waits for no pause.
  std::uint64_t may_answer_switch_at() const;

  /// The first pause, doubled so often, up to the longest one and the sender's ACK timeout.
  std::uint64_t doubled_pause(std::uint64_t first, std::uint32_t times) const;

  /// The least time between two answers: a round trip, or half the sender's ACK timeout if that is
  /// less.
  std::uint64_t answer_pause() const;

  /// The sender's, without the least one of ack_timeout_ns(): a sender that has a shorter timeout
  /// would use up its tries before a pause ends.
  std::uint64_t told_ack_timeout() const;

  /// They leave again because somebody wants them.
  void answer();

  /// The receiver has no buffer for a, and the sender is to wait so long. Then it comes again, and
  /// all leaves again from a on.
  void hold(std::uint64_t now_ns, std::uint64_t wait_ns) {
    had_no_buffer = true;
    is_answer_due = false;
    is_resending = false;
    held_until = now_ns + 2 * wait_ns;
    hushed_until = hushed_until < held_until ? held_until : hushed_until;
  }

  /// Whether results from a on have yet to leave again.
  bool is_answered_soon() const {
    return is_resending && !wire::psn_before(unacknowledged, resend_next);
  }

  /// When its sender, which waits, is to be kept alive next: a quarter of the ACK timeout after its
  /// last packet, and every quarter from then on.
  std::uint64_t keep_alive_at() const;

  /// Because of the timer, results are sent again.
  void resends_late() {
    ++counters.resent_late;
    ++resends;
    doublings += doublings < kMostDoublings ? 1 : 0;
  }
};

/// The local ACK timeout 4.096 us x 2^x (IBTA §9.9), in ns. Exponents below 12 count as 12
/// (docs/protocol.md §2a).
std::uint64_t ack_timeout_ns(std::uint8_t exponent);

/// How often a sender that waits is kept alive, in ns: four times in an ACK timeout.
inline std::uint64_t keep_alive_interval(std::uint8_t ack_timeout) {
  return ack_timeout_ns(ack_timeout) / 4;
}

} // namespace weir::recovery
