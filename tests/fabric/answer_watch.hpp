// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/incarnations.hpp"
#include "event_queue.hpp"
#include "packet.hpp"
#include "stage/inline_switch.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace weir::fabric {

/// What receivers have acknowledged, seen at their own ends: every answer counts when its host
/// sends it, even if it is lost on the way. The switch may say no more in their names (I9), must
/// answer itself the NAKs that its cache can answer (I10), and speaks only when docs/protocol.md §9
/// and §10 let it.
class AnswerWatch {
 public:
  struct Requester {
    std::uint16_t ring = 0;
    std::uint16_t rank = 0;
    std::uint32_t generation = 0;
    std::uint16_t host = 0;
    std::uint32_t qp = 0;
    std::uint32_t first_psn = 0;
    std::uint32_t nonce = 0;       // of its hello
    std::uint64_t patience_ms = 0; // of the ring
    ring::KeepAlive keep_alive{};  // likewise
    // At the switch:
    std::uint16_t sender = 0; // who brings its packets: a child's number, or the parent's
    bool is_rank = true;      // that is the rank itself, and no switch
    bool is_parent = false;   // that is the parent
    bool is_outgoing = false; // what leaves goes to the parent
  };

  /// A rank's queue pair to its successor begins.
  void expect(const Requester& requester);

  /// The switch has lost the ring's state, or its connections have ended.
  void forget(std::uint16_t ring);

  /// A host sends an acknowledgement.
  void sends(const Packet& answer);

  /// A packet of the rank comes to the switch.
  void brings(const Packet& packet);

  /// A result of the rank leaves the switch.
  void result_leaves(const Packet& result);

  /// A rank of the ring has brought a packet that the switch did not have.
  void has_news(std::uint16_t ring, Time now) { news_at_[ring] = now; }

  /// To the ranks of these rings the switch says nothing from now on, and to those of no others: a
  /// link of their trees is down.
  void expect_silence(std::set<std::uint16_t> rings) { silent_ = std::move(rings); }

  /// The queue pair of a rank of another ring on that host, which the switch has admitted.
  std::optional<std::uint32_t> queue_pair_beside(std::uint16_t ring, std::uint16_t host) const;

  /// Another ring's rank on that host will claim the queue pair.
  void expect_lie(std::uint16_t host, std::uint32_t queue_pair);

  /// Before and after the switch looks at its timers, which alone keep senders alive. An answer
  /// that did so is judged in between; what a run that is over was told is nobody's here.
  void count_kept_alive(const stage::InlineSwitch& engine);

  /// An answer of the switch's own leaves. Throws Violation: I9, §9, §10.
  void made(const Packet& answer, Time now, const stage::InlineSwitch& engine);

  /// A host's answer has passed the switch, undamaged.
  void has_passed(const Packet& answer);

  /// A host's answer passes the switch. Throws Violation I10, except where the switch may not
  /// speak: two hellos claim one queue pair, or its patience may be over.
  void passes(const Packet& answer, const stage::InlineSwitch& engine) const;

  /// Whether a rank of the ring was kept alive for the sake of a stranger's copy of its hello,
  /// while its own was lost. Its timer, which would repeat it, then waits (docs/protocol.md §10).
  bool was_misled(std::uint16_t ring) const;

  /// Whether the switch has asked a rank of the ring that was late, not one that lost a packet.
  bool has_asked_late_rank(std::uint16_t ring) const { return asked_late_.contains(ring); }

  /// Whether another ring's hello claims the rank's queue pair.
  bool is_lied_about(std::uint16_t ring, std::uint16_t rank) const;

  /// Whether a frame of a host or of the switch's own, which has neither tags nor options, is an
  /// ACK or NAK.
  static bool is_answer(const Packet& packet);

 private:
  using Place = std::pair<std::uint16_t, std::uint16_t>; // ring and rank

  struct Record {
    Requester requester;
    std::uint32_t acknowledged = 0; // all PSNs below it
    std::uint32_t released = 0;     // likewise: their results have left
    std::uint32_t left = 0;         // likewise, in this life of the switch
    std::uint32_t passed = 0;       // likewise: acknowledgements passed the switch
    std::uint32_t brought = 0;      // likewise: one of them came, or a later one
    std::map<std::uint32_t, std::uint32_t> sequences; // MSN by what it acknowledged
    std::optional<std::uint32_t> nak;                 // PSN of the switch's last one
    std::optional<std::uint32_t> rnr_nak;             // likewise
    Time rnr_nak_at = 0;
    bool is_known = false;      // the switch has admitted it, and has not forgotten it since
    bool is_lied_about = false; // another ring's hello claims its queue pair
    bool is_misled = false;     // see was_misled()
    bool is_told = false;       // that its run is over
    bool is_reused = false; // the queue pair number belonged to an earlier run: docs/protocol.md §9
  };

  struct Answer {
    std::uint16_t host = 0; // destination
    std::uint32_t qp = 0;   //
    std::uint32_t psn = 0;
    std::uint8_t syndrome = 0;
    std::uint32_t message_sequence = 0;

    /// The PSN below which it acknowledges all.
    std::uint32_t acknowledges() const;
  };

  static const conn::Incarnations& incarnations_for(const Record& record,
                                                    const stage::InlineSwitch& engine);
  static std::uint64_t kept_alive(const conn::Incarnations& incarnations, const Record& record);
  static std::optional<Answer> read(const Packet& packet);
  const Record* record_of(const Answer& answer) const;
  static bool is_current(const Record& record, const conn::Incarnations& incarnations);
  static bool waits(const Record& record, const conn::Incarnations& incarnations);
  template <typename Visitor>
  void for_each_meant(const Answer& answer, std::uint32_t generation, Visitor&& visit);
  void tells(const Answer& answer);
  static void check_obeyed(const Record& record, const Answer& answer);
  static void check_truth(const Record& record, const Answer& answer);
  void note_late_rank(const Requester& requester, const Answer& answer,
                      const conn::Incarnations& incarnations);
  void check_silence(const Record& record) const;
  void check_patience(const Record& record, Time now) const;
  static void check_ask(Record& record, const Answer& answer, Time now);
  void check_keep_alive(const Record& record, const conn::Incarnations& incarnations);

  std::map<Place, Record> records_;
  std::map<Place, Record> former_;            // of the runs before, on other queue pairs
  std::map<Place, std::uint64_t> kept_alive_; // as the switch has counted it
  std::map<std::uint16_t, Time> news_at_;     // by ring
  std::set<std::uint16_t> silent_;            // rings
  std::set<std::uint16_t> asked_late_;        // likewise
};

} // namespace weir::fabric
