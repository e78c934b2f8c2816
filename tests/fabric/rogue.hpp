// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fabric.hpp"
#include "forgery.hpp"
#include "scenario.hpp"
#include "script.hpp"
#include "world.hpp"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace weir::fabric {

/// Strangers. They see what the rings' members send and send it again, or nearly so. What they make
/// of a sound ring's packets can by docs/protocol.md §3 never become a contribution: the switch has
/// to drop it, or it goes to a queue pair that nobody has. What they make of a victim's may be
/// anything that is not another ring's.
class Rogue {
 public:
  Rogue(World& world, Fabric& fabric, const Scenario& scenario, Coverage& coverage);

  /// A member's packet comes to the switch unhurt.
  void notice(const Packet& packet);
  void act();

  /// Makes the switch forget the dead connections of a ring that was just reset …
  void bury_connections();
  /// … and brings the hellos that admitted them once more: late copies, all at once.
  void repeat_hellos(std::uint16_t ring);

 private:
  struct Seen {
    std::vector<std::uint8_t> bytes;
    std::uint16_t port = 0;
    std::uint16_t ring = 0; // index
  };

  void replay(const Seen& seen);
  void forge(const Seen& seen);
  void forge_first(Forgery& forgery, const Seen& seen);
  void forge_hello(Forgery& forgery, const Seen& seen);
  void forge_refused(Forgery& forgery, const Seen& seen);
  void forge_foreign(Forgery& forgery, const Seen& seen);
  void forge_other(Forgery& forgery, const Seen& seen);
  void forge_wildly(Forgery& forgery, const Seen& seen);
  void be_odd();
  void run_script();
  void fill_table(std::uint32_t queue_pairs);
  bool claim_other_ring(Forgery& forgery, const Seen& seen) const;
  bool is_pinned(const Seen& seen) const;
  void send(std::uint16_t port, std::span<const std::uint8_t> bytes);
  void send_from_elsewhere(Forgery& forgery);
  test::FrameSpec between_neighbours();

  World& world_;
  Fabric& fabric_;
  const Scenario& scenario_;
  Coverage& coverage_;
  Script script_;
  std::deque<Seen> recent_;
  std::deque<Seen> hellos_;
  std::vector<std::uint32_t> victim_queue_pairs_;
};

} // namespace weir::fabric
