// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fabric.hpp"
#include "forgery.hpp"
#include "rogue_switch.hpp"
#include "scenario.hpp"
#include "script.hpp"
#include "world.hpp"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace weir::fabric {

/// Strangers. They see the members' packets and send them again, unchanged or changed. By
/// docs/protocol.md §3, a packet made from a sound ring's packet can never become a contribution:
/// the switch must drop it, or it goes to a queue pair that no host has. A packet made from a
/// victim's may be anything, but not another ring's.
class Rogue {
 public:
  Rogue(World& world, Fabric& fabric, const Scenario& scenario, Coverage& coverage);

  /// A member's packet comes to a switch undamaged; from another switch also an answer.
  void notice(const Packet& packet, std::uint16_t place);
  void act();

  /// RogueSwitch::ask_on.
  void ask_on() { switch_.ask_on(); }

  /// Says at once what may pass for a sender's before the sender speaks again.
  void use_restart();

  /// Makes the switch forget the dead connections of a ring that was just reset …
  void bury_connections();
  /// … and sends again the hellos that had admitted them: late copies, all at once.
  void repeat_hellos(std::uint16_t ring);

 private:
  struct Seen {
    std::vector<std::uint8_t> bytes;
    std::uint16_t place = 0; // where it came
    std::uint16_t ring = 0;  // index
  };

  void act_between_switches();
  bool forge_partial(wire::InaHeader& ina, Forgery& forgery);
  bool forge_total(wire::InaHeader& ina, Forgery& forgery);
  void replay(const Seen& seen);
  void forge(const Seen& seen);
  void forge_first(Forgery& forgery, const Seen& seen);
  void forge_hello(Forgery& forgery, const Seen& seen);
  void forge_refused(Forgery& forgery, const Seen& seen);
  void forge_foreign(Forgery& forgery, const Seen& seen);
  void pose_as_sender(Forgery& forgery, const Seen& seen);
  void forge_other(Forgery& forgery, const Seen& seen);
  void forge_wildly(Forgery& forgery, const Seen& seen);
  void be_odd();
  void run_script();
  void greet_for_all();
  void fill_table(std::uint32_t queue_pairs);
  bool claim_other_ring(Forgery& forgery, const Seen& seen) const;
  bool is_pinned(const Seen& seen) const;
  void send(std::uint16_t place, std::span<const std::uint8_t> bytes);
  void send_from_elsewhere(Forgery& forgery);
  test::FrameSpec between_neighbours();

  World& world_;
  Fabric& fabric_;
  const Scenario& scenario_;
  Coverage& coverage_;
  Script script_;
  RogueSwitch switch_;
  std::deque<Seen> recent_;
  std::deque<Seen> hellos_;
  std::deque<Seen> between_switches_;
  std::vector<std::uint32_t> victim_queue_pairs_;
};

} // namespace weir::fabric
