// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fabric.hpp"
#include "forgery.hpp"
#include "scenario.hpp"
#include "world.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace weir::fabric {

/// A switch of a ring's tree that lies to the one at its link's other end, from above or below; or
/// a stranger on that link. On an attacked ring it sends anything: totals that nobody waits for, in
/// any order, with other data; acknowledgements and asks of any PSN, without end. On a sound ring
/// only what the other one must drop, or must not let a rank hear of. By dice of its own, as
/// Rogue::greet_for_all.
class RogueSwitch {
 public:
  RogueSwitch(World& world, Fabric& fabric, const Scenario& scenario, Coverage& coverage)
      : world_(world), fabric_(fabric), scenario_(scenario), coverage_(coverage) {}

  /// A member's packet comes undamaged from another switch.
  void notice(const Packet& packet, std::uint16_t place);
  void act();

  /// Asks once more of those that it asks without end.
  void ask_on();

 private:
  struct Seen {
    std::vector<std::uint8_t> bytes;
    std::uint16_t place = 0; // where it came
    std::uint16_t ring = 0;  // index
  };

  /// What came from other switches.
  struct Memory {
    std::deque<Seen> sums;    // and hellos
    std::deque<Seen> answers; // of receivers
  };

  static void remember(std::deque<Seen>& memory, const Seen& seen);
  bool is_attacked(const Seen& seen) const;
  bool comes_from_above(const Seen& seen) const;
  bool runs_here(const Seen& seen, std::uint32_t nonce) const;
  bool has_switch(const Seen& seen) const;

  void act_on(Dice& dice, const Memory& memory, std::uint64_t act);
  void answer(Dice& dice, const Seen& seen);
  void begin_flood(Dice& dice, const Seen& seen);
  void mislead(Dice& dice, const Memory& memory, const Seen& seen);
  void shuffle(Dice& dice, const Memory& memory);
  void hurry(Dice& dice);
  bool forge_attacked(Dice& dice, Forgery& forgery) const;
  bool forge_result(Dice& dice, const Seen& seen, Forgery& forgery) const;
  bool forge_unasked(Dice& dice, Forgery& forgery) const;
  void send(const Seen& seen, Forgery& forgery);

  World& world_;
  Fabric& fabric_;
  const Scenario& scenario_;
  Coverage& coverage_;
  Memory of_sound_;
  Memory of_attacked_; // rings
  std::optional<Seen> asked_;
  std::uint32_t asks_left_ = 0;
};

} // namespace weir::fabric
