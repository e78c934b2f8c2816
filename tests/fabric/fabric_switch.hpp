// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "answer_watch.hpp"
#include "coverage.hpp"
#include "incarnation_watch.hpp"
#include "network/deadline_timer.hpp"
#include "network/star.hpp"
#include "pace_watch.hpp"
#include "ring_watch.hpp"
#include "scenario.hpp"
#include "slow_helpers.hpp"
#include "sum_watch.hpp"
#include "world.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace weir::fabric {

/// What all switches of a run note together.
struct FabricNotes {
  FabricNotes(const Scenario& scenario, Coverage& coverage)
      : lost(scenario.rings.size()), sums(scenario, coverage) {}

  std::uint64_t hash = 0;          // of everything that left a switch (I8)
  std::vector<std::uint64_t> lost; // by ring: members' packets that links lost, no acknowledgements
  SumWatch sums;                   // of a run with several switches
  /// By link between switches, at the place that it leaves, and ring: partial sums and totals.
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> carried;
  /// By ring, switch and number of the packet: which switches below have had a partial sum of
  /// theirs lost on the way to it.
  std::map<std::tuple<std::uint16_t, std::uint16_t, std::uint32_t>, std::uint64_t> lost_sums;
  std::set<std::uint16_t> lost_hellos; // rings of which a hello's result was lost between switches
};

/// A switch, and the links that leave it and that lead from stations to it. Checks at every frame
/// what can be seen from outside: I2, I6, I7.
class FabricSwitch : public network::Star<PacketPool> {
 public:
  /// What a switch has in common with the others of its run.
  struct Shared {
    World& world;
    const Scenario& scenario;
    Coverage& coverage;
    FabricNotes& notes;
  };

  FabricSwitch(const Shared& shared, std::uint16_t node, std::uint64_t seed);
  ~FabricSwitch() override;
  FabricSwitch(const FabricSwitch&) = delete;
  FabricSwitch& operator=(const FabricSwitch&) = delete;

  /// A packet has come to the switch.
  void accept(Packet& packet);

  /// A helper makes a reduction, and the worker collects it.
  void let_helper_sum();

  /// Workers take over some of what other workers' lcores have received for them.
  void let_workers_take_over();

  void restart_switch();
  /// The new switch's configuration has another ring in place of this one.
  void forget_ring(std::uint16_t ring);
  /// Makes the ring anew, for the run with this nonce alone.
  void make_ring(std::uint16_t ring, std::uint32_t nonce);
  void reset_ring(std::uint16_t ring);
  void drain_ring(std::uint16_t ring);
  void withdraw_ring(std::uint16_t ring);
  /// After withdraw_ring, if no other ring is withdrawn.
  void add_ring(std::uint16_t ring);
  void end_noise();
  /// A new epoch of the job begins: the check of its order starts again.
  void expect_epoch(std::uint16_t ring, std::uint32_t generation);
  /// A rank begins to send.
  void expect_member(AnswerWatch::Requester requester);

  /// What a rank on that host may say in its hello to lie: another ring's queue pair.
  std::optional<std::uint32_t> queue_pair_beside(std::uint16_t ring, std::uint16_t host) const {
    return answers_.queue_pair_beside(ring, host);
  }

  /// Another ring's rank on that host will claim the queue pair.
  void expect_lie(std::uint16_t host, std::uint32_t queue_pair) {
    answers_.expect_lie(host, queue_pair);
  }

  /// AnswerWatch::was_misled.
  bool was_misled(std::uint16_t ring) const { return answers_.was_misled(ring); }

  /// AnswerWatch::has_asked_late_rank.
  bool has_asked_late_rank(std::uint16_t ring) const { return answers_.has_asked_late_rank(ring); }

  /// AnswerWatch::is_lied_about.
  bool is_lied_about(std::uint16_t ring, std::uint16_t rank) const {
    return answers_.is_lied_about(ring, rank);
  }

  /// Whether strangers' hellos have taken the place of another that waited, in the present epoch.
  bool has_displaced(std::uint16_t ring) const { return displaced_[ring].has_happened; }

  /// The switch learns that these of its ports have no link.
  void notice_ports_down(l2::PortSet ports);

  l2::PortSet ports_down() const { return ports_down_; }

  /// A host sends an acknowledgement.
  void expect_answer(const Packet& answer) { answers_.sends(answer); }

  /// The switch looks at its timers.
  void poll_timers();

  /// Of the ring with this number, as the switch has it.
  std::uint32_t session_of(std::uint32_t ring_id) const;
  /// The nonce of the ring's incarnation; 0: none.
  std::uint32_t nonce_of(std::uint16_t ring) const;

  /// What the switch knows of the rank's connection. nullptr: it does not run the incarnation, or
  /// has lost its state since the run began.
  const recovery::Flow* flow_of(std::uint16_t ring, std::uint16_t rank, std::uint32_t nonce) const;

  /// What a ring waits for, for the text of a failure.
  std::string waiting_of(std::uint16_t ring) const;

 private:
  Time now() const override { return world_.now; }

  network::Content content_of(const Packet& packet) const override;
  void note(network::Mishap mishap, const Packet& packet, const network::StarPlace& place) override;
  void damage(Packet& packet) override;
  void arrive(Time time, Packet& packet, const network::StarPlace& place) override;
  void depart(Packet& packet, l2::PortSet ports) override;
  void leave(std::uint16_t port, Packet& packet) override;
  void give_back(Packet& packet) override;
  void make_own(Packet& packet) override;

  void note_loss(const Packet& packet, const network::StarPlace& place);
  void enters(Packet& packet);
  void leaves(Packet& packet);
  void install_switch(std::vector<ring::RingSpec> rings);
  void replace_switch(std::vector<ring::RingSpec> rings);
  void operator_acted(std::uint16_t ring);
  l2::PortSet ports_of_switches(std::uint16_t ring) const;
  void check_departure(const Packet& packet, l2::PortSet ports) const;
  void check_unaltered(const Packet& packet) const;
  void check_foreign(const Packet& packet) const;
  void check_result(const Packet& packet, l2::PortSet ports) const;
  bool meets(const Origin& member) const;
  void check_order(const Packet& packet);
  std::optional<Origin> owner_of(const Packet& packet) const;
  void check_sums(const Packet& packet, l2::PortSet ports);
  std::optional<std::uint16_t> uplink_of(std::uint16_t ring) const;
  static wire::InaHeader partial_header_due(wire::InaHeader header, const wire::InaHeader& leaving);
  wire::InaHeader header_due(const Packet& packet, l2::PortSet ports) const;

  const RingTree::Part& part(std::uint16_t ring) const {
    return scenario_.rings[ring].tree.parts[node_];
  }

  void check_own(const Packet& packet);
  void check_what_goes_up() const;
  void check_pace();
  void expect_timer();
  void note_news();
  void take_some_over();
  void take_over(std::size_t inbox);
  void check_balance() const;
  void tell_verdict();

  World& world_;
  const Scenario& scenario_;
  Coverage& coverage_;
  FabricNotes& notes_;
  const std::uint16_t node_; // its number
  conn::CurrentOperators operators_;
  SlowHelpers helpers_;
  network::Dice workers_dice_; // their own, so that the seed's other draws do not change
  bool is_handover_due_ = false;
  l2::PortSet ports_down_ = 0;
  std::uint64_t in_switch_ = 0; // frames
  std::uint64_t accepted_ = 0;
  const Packet* accepting_ = nullptr;
  network::DeadlineTimer switch_timer_;
  AnswerWatch answers_;
  std::vector<std::uint64_t> contributions_; // by ring, as the switch counted them last

  struct Displaced {
    std::uint64_t hellos = 0; // likewise
    bool has_happened = false;
  };

  std::vector<Displaced> displaced_;
  std::unordered_set<std::uint32_t> results_; // a CRC of each that has left
  std::vector<RingWatch> watches_;
  std::vector<IncarnationWatch> incarnations_; // by ring
  std::vector<PaceWatch> paces_;               // likewise
  std::vector<std::uint32_t> nonces_;          // of rings that were made; 0: none
  std::vector<std::uint32_t> lives_;           // by ring: how often its state was lost
  // Arrival number of its last frame that left.
  std::map<std::uint16_t, std::uint64_t> last_of_stream_;
};

/// Whether it is a member's acknowledgement.
bool is_hosts_answer(const Packet& packet);

} // namespace weir::fabric
