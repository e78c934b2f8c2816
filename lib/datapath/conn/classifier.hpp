// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_table.hpp"
#include "conn/foreign_sessions.hpp"
#include "conn/incarnations.hpp"
#include "conn/magic_rule.hpp"
#include "conn/opening.hpp"
#include "conn/verdict.hpp"
#include "frame/frame.hpp"
#include "ring/current_rings.hpp"
#include "weir/reasons.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace weir::conn {

/// Why a packet is dropped that parse() called malformed.
DropReason reason_for(wire::Defect defect);

/// Classifies packets for the rings of one worker (docs/protocol.md §3). What it must remember of
/// them is in Incarnations. All times are milliseconds of one clock.
class Classifier {
 public:
  using Settings = Incarnations::Settings;

  /// Does a filling slot of the ring hold a packet of the child?
  using IsHeld = std::function<bool(const ring::RingChild&)>;

  /// Made with the same `current` and `settings` as `incarnations`; all outlive the classifier.
  Classifier(const ring::CurrentRings& current, Incarnations& incarnations,
             const Settings& settings, IsHeld is_held);

  /// For RoCE frames whose `pair` is not 0. Verifies the ICRC of a FIRST or ONLY; other packets of
  /// a contribution may come unverified. On `wait`, `climb` and `begin` the frame is kept. Call
  /// Incarnations::take_given_up() afterwards.
  Verdict classify(frame::Frame& frame, std::uint64_t now);

  /// Of queue pairs on pairs that carry only acknowledgements of rings.
  void set_aging(std::uint64_t milliseconds) { magic_rule_.set_aging(milliseconds); }

 private:
  bool greets_unbound_ring(const frame::Frame& frame) const;
  Connection* look_up(frame::Frame& frame, const std::optional<std::uint32_t>& epoch,
                      std::uint64_t now);
  Verdict other_request(frame::Frame& frame, std::uint64_t now);
  Verdict start_of_message(frame::Frame& frame, std::uint64_t now);
  static Verdict start_elsewhere(const frame::Frame& frame, const ring::RingChild& sender);
  Verdict inside_message(frame::Frame& frame, std::uint64_t now);
  Verdict inside_ring_message(const frame::Frame& frame, const Connection& connection);
  Verdict plain_start(const frame::Frame& frame, Connection* connection, std::uint64_t now);
  Verdict foreign_start(const frame::Frame& frame, ForeignReason reason, Connection* connection,
                        std::uint64_t now);
  Verdict foreign_hello(const frame::Frame& frame, Connection* connection, std::uint64_t now);
  Verdict foreign_data(const frame::Frame& frame, Connection* connection);
  Verdict hello(const Opening& opening, Connection* connection, std::uint64_t now);
  Verdict hello_from_above(const Opening& total, Connection* connection, std::uint64_t now);
  Verdict foreign_partial(const frame::Frame& frame, ForeignReason reason, Connection* connection,
                          std::uint64_t now);
  Verdict contributed(const ring::RingChild& sender, MessageRecord* record, std::uint32_t packet);
  Verdict data_start(const Opening& opening, Connection* connection, std::uint64_t now);
  Verdict data_by_operator(const Opening& opening);
  Verdict enter_history(const Opening& opening);
  std::optional<Verdict> repeated_start(const frame::Frame& frame, const wire::InaHeader& ina,
                                        Connection* connection, std::uint64_t now);

  const ring::CurrentRings& current_;
  Incarnations& incarnations_;
  ForeignSessions& foreign_sessions_;
  MagicRule magic_rule_; // for pairs that carry only acknowledgements of rings
  IsHeld is_held_;
};

/// The magic rule for strangers remembers as many queue pairs as Incarnations does for neighbours.
inline MagicRule::Settings magic_rule_settings(const Classifier::Settings& settings) {
  return {settings.plain_entries, settings.ports, settings.aging, settings.hash_key,
          settings.foreign_sessions};
}

} // namespace weir::conn
