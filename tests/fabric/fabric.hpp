// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fabric_switch.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::fabric {

/// The switches and their links. What happens to all of them at once, and what is told to all.
class Fabric {
 public:
  Fabric(World& world, const Scenario& scenario, std::uint64_t seed, Coverage& coverage);

  FabricSwitch& node(std::uint16_t node) { return *switches_[node]; }

  std::uint16_t nodes() const { return static_cast<std::uint16_t>(switches_.size()); }

  /// The two directions of the link at a place.
  network::Link& inward(std::uint16_t place);
  network::Link& outward(std::uint16_t place);

  /// A station sends a frame, or somebody in its place.
  void send(std::uint16_t place, Packet& packet);
  /// A member sends a frame.
  void send_from(std::uint16_t host, Packet& packet);

  /// A packet has come to a switch. Throws Violation §11 where the switches on a connection's way
  /// then contradict each other.
  void accept(std::uint16_t place, Packet& packet);

  void end_noise();

  /// All switches get another in their place.
  void restart_all();
  /// Makes the ring anew, for the run with this nonce alone.
  void make_ring(std::uint16_t ring, std::uint32_t nonce);
  /// A new epoch of the job begins: the check of its order starts again.
  void expect_epoch(std::uint16_t ring, std::uint32_t generation);

  /// The same: what leaves the switches is compared with its results.
  void expect_run(JobRun& run) {
    notes_.sums.expect(run);
    runs_[run.ring] = &run;
  }

  /// The two switches at the ends of a link learn that it is down, or up again.
  void notice_link_down(std::uint16_t place);
  void notice_link_up(std::uint16_t place);

  /// A rank begins to send.
  void expect_member(const AnswerWatch::Requester& requester);

  /// What a rank on that host may say in its hello to lie: another ring's queue pair.
  std::optional<std::uint32_t> queue_pair_beside(std::uint16_t ring, std::uint16_t host);

  /// AnswerWatch::was_misled.
  bool was_misled(std::uint16_t ring) const;

  /// Whether a run that had begun on some switches of a tree cannot begin on the others. A
  /// stranger on a link between switches has displaced a hello there that its rank says no more,
  /// because the next switch has acknowledged it.
  bool was_cut_short(std::uint16_t ring) const;

  /// Packets of the ring's members that links have lost, acknowledgements not counted.
  std::uint64_t lost_of(std::uint16_t ring) const { return notes_.lost[ring]; }

  /// Throws Violation I10 if a link between switches has not carried so many sums of the ring in
  /// each direction.
  void check_uplinks(std::uint16_t ring, std::uint64_t packets) const;

  /// Whether links between switches have lost what makes a rank repeat: all that the children of a
  /// switch had sent it of some packet, so that it could not know of it; or a hello's result,
  /// for the rank whose hello it was goes on when it is acknowledged, and is late until then. Or
  /// the mending took so long that a rank which waited for it was asked.
  bool may_make_ranks_repeat(std::uint16_t ring) const;

  std::uint64_t hash() const { return notes_.hash; }

  /// What a ring waits for, for the text of a failure.
  std::string waiting_of(std::uint16_t ring) const;

 private:
  void check_way(std::uint16_t ring, std::uint16_t rank) const;

  const Scenario& scenario_;
  FabricNotes notes_;
  std::vector<std::unique_ptr<FabricSwitch>> switches_;
  std::vector<const JobRun*> runs_; // by ring: the present one
};

} // namespace weir::fabric
