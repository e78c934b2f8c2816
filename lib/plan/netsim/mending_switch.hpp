// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/fold_switch.hpp"
#include "netsim/round_trip.hpp"

#include <cstdint>
#include <vector>

namespace weir::netsim {

/// A switch that repairs losses itself. Results leave in order. A rank that misses a result gets it
/// from the cache. A rank whose contribution is missing is asked for it: first by a NAK at the
/// oldest packet that its receiver has not acknowledged, once for each packet and each time that
/// the sender has gone back; then by RNR NAKs. A repeat of what was released causes at most one
/// resend for each time that its sender has gone back, and none where the switch has asked for it.
/// The switch never acknowledges more than the receiver has. In a tree all this is done hop by hop:
/// partial sums are sent again to the parent, totals to the children. A switch asks a switch by
/// NAKs alone, and obeys each.
///
/// A connection's timer is its measured round trip, from release to acknowledgement, plus four
/// times the deviation, and at least `floor`. Each resend doubles it until a round trip is measured
/// again. The timer decides when a released result is sent again, and when a child whose packet the
/// oldest slot lacks is asked. A switch cannot measure the way from its parent: there the timer is
/// `floor`. A partial sum that is lost is asked for: only the parent knows what is late.
class MendingSwitch : public FoldSwitch {
 public:
  MendingSwitch(const FoldPlace& place, const MessageList& messages, FoldPorts& ports, Time floor);

  void take_contribution(std::uint32_t child, std::uint32_t packet, Time now) override;
  void take_total(std::uint32_t packet, Time now) override;
  Passage see_answer_of(std::uint32_t child, Frame::Kind kind, std::uint32_t packet,
                        Time now) override;
  Passage see_answer_from_above(Frame::Kind kind, std::uint32_t packet, Time now) override;

  /// Half of the shortest timer.
  Time interval() const override { return floor_ / 2; }

  void look_again(Time now) override;

  std::uint32_t most_filling() const override { return slots_.most_filling(); }

 private:
  static constexpr std::uint32_t kNothing = UINT32_MAX;
  static constexpr Time kFirstPause = 15'000 * kMicrosecond;
  static constexpr Time kLongestPause = 100'000 * kMicrosecond;
  static constexpr std::uint32_t kMostTries = 5; // after these, the sender must act

  /// What the switch does about a pass of a sender, which begins with a packet that is not above
  /// the one before.
  enum class Answer : std::uint8_t { nothing, acknowledgement, resend };
  enum class Asked : std::uint8_t { no, yes };

  /// What comes from a child or from the parent.
  struct Inflow {
    std::uint32_t missing = 0; // the lowest packet that has not come
    std::uint32_t end = 0;     // behind the highest that has come
    std::uint32_t previous = kNothing;
    Answer answer = Answer::nothing;    // to the present pass
    Asked cause = Asked::no;            // whether the switch has asked for the present pass
    Asked asked = Asked::no;            // since it began
    std::uint32_t asked_for = kNothing; // `missing` when its sender was asked, in this pass
    std::uint32_t asked_at = kNothing;  // acknowledged when it was asked by NAK
    std::uint32_t asked_below = 0;      // `end` when a switch was asked
    Time quiet_until = 0;               // after it was asked
    Time pause = 0;                     // after it will be asked next

    bool has_gap() const { return end > missing; }

    void note(std::uint32_t packet);
  };

  /// What goes to a child.
  struct Outflow {
    std::uint32_t acknowledged = 0; // the lowest packet that its receiver has not acknowledged
    Time since = 0;                 // time of its last advance, or of the resend
    std::uint32_t tries = 0;
    std::uint32_t doublings = 0; // of the timer, since a round trip was measured
    RoundTrip round_trip;
  };

  /// Whether a child's own connection goes to the parent.
  bool leads_up(std::uint32_t child) const;
  std::uint32_t acknowledged_of(std::uint32_t child) const;
  std::uint32_t sent_of(std::uint32_t child) const;
  bool has_gap() const;
  bool is_known(std::uint32_t packet) const;
  void release_ready(Time now);
  void release(std::uint32_t packet, Time now);
  void ask(std::uint32_t child, Time now);
  void ask_rank(std::uint32_t child);
  void ask_rank_again(std::uint32_t child, Time now);
  void ask_late(std::uint32_t child, Time now);
  void ask_parent(Time now);
  bool may_ask_switch(Inflow& inflow, std::uint32_t acknowledged, Time timer, Time now);
  void swallow(std::uint32_t child, std::uint32_t packet, Time now);
  void swallow_total(std::uint32_t packet, Time now);
  Answer answer_to(Inflow& inflow, std::uint32_t packet, std::uint32_t acknowledged);
  void resend(std::uint32_t child, std::uint32_t from, Time now);
  void climb_again(std::uint32_t from);
  void acknowledge(std::uint32_t child, std::uint32_t end, Time now);
  void pass_acknowledgement(std::uint32_t child, std::uint32_t end);
  bool knows_first_of(std::uint32_t packet, std::uint32_t child) const;
  void resend_late(Time now);

  Time timer_of(const Outflow& flow) const;
  Time longest_wait_for(std::uint32_t child) const;

  const FoldPlace place_;
  const MessageList& messages_;
  FoldPorts& ports_;
  const Time floor_; // of timers
  SlotTable slots_;
  std::vector<Inflow> inflows_;
  std::vector<Outflow> outflows_;
  Inflow above_;                         // totals
  std::vector<std::uint32_t> known_;     // by slot: the packet whose total has come
  std::uint32_t released_ = 0;           // results before this one have gone down
  std::uint32_t climbed_ = 0;            // partial sums before this one have gone up
  std::uint32_t above_acknowledged_ = 0; // on the last child's own connection
  // Since when the oldest slot is the oldest, or when it was asked for.
  Time oldest_since_ = 0;
};

} // namespace weir::netsim
