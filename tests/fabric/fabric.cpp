// SPDX-License-Identifier: BSD-3-Clause
#include "fabric.hpp"

#include "violation.hpp"

#include <algorithm>
#include <bit>

namespace weir::fabric {

Fabric::Fabric(World& world, const Scenario& scenario, std::uint64_t seed, Coverage& coverage)
    : scenario_(scenario), notes_(scenario, coverage), runs_(scenario.rings.size()) {
  for (std::uint16_t node = 0; node < scenario.places_of.size(); ++node) {
    switches_.push_back(std::make_unique<FabricSwitch>(
        FabricSwitch::Shared{world, scenario, coverage, notes_}, node, seed));
  }
}

network::Link& Fabric::inward(std::uint16_t place) {
  const Place& at = scenario_.places[place];
  return at.end == Place::End::peer ? outward(at.peer) : node(at.node).to_switch(at.port);
}

network::Link& Fabric::outward(std::uint16_t place) {
  const Place& at = scenario_.places[place];
  return node(at.node).from_switch(at.port);
}

void Fabric::send(std::uint16_t place, Packet& packet) {
  const Place& at = scenario_.places[place];
  node(at.node).send(at.port, packet);
}

void Fabric::send_from(std::uint16_t host, Packet& packet) {
  if (is_hosts_answer(packet)) {
    for (const auto& each : switches_) {
      each->expect_answer(packet);
    }
  }
  send(host, packet);
}

void Fabric::accept(std::uint16_t place, Packet& packet) {
  const Place& at = scenario_.places[place];
  packet.become_new();
  packet.ingress = at.port;
  const Origin origin = packet.origin;
  const bool is_answer = is_hosts_answer(packet);
  node(at.node).accept(packet);
  if (scenario_.has_several_switches() && origin.kind == Origin::Kind::member) {
    const std::uint16_t world = scenario_.rings[origin.ring].spec.world();
    const auto before = static_cast<std::uint16_t>((origin.rank + world - 1u) % world);
    check_way(origin.ring, is_answer ? before : origin.rank);
  }
}

/// From the rank on, s does not grow, and a does not shrink (docs/protocol.md §11.9). But the
/// hello's acknowledgement may pass a switch before that has begun, and reach one below later. And
/// what a switch is told about another ring's queue pair may move a of the rank that has it.
void Fabric::check_way(std::uint16_t ring, std::uint16_t rank) const {
  const RingPlan& plan = scenario_.rings[ring];
  const JobRun* run = runs_[ring];
  if (run == nullptr || plan.role == RingRole::victim || !plan.tree.has_several_switches()) {
    return;
  }
  const recovery::Flow* before = nullptr;
  for (const std::uint16_t node : plan.tree.way_of(rank, plan.spec.world())) {
    const recovery::Flow* flow = switches_[node]->flow_of(ring, rank, run->nonce);
    if (flow == nullptr || switches_[node]->is_lied_about(ring, rank)) {
      continue;
    }
    const bool is_in_order = !wire::psn_before(flow->next_out, flow->unacknowledged) &&
                             !wire::psn_before(flow->next_in, flow->next_out);
    const bool knows_nothing = flow->unacknowledged == run->seats[rank].outgoing_psn;
    const bool fits =
        before == nullptr ||
        (!wire::psn_before(before->next_out, flow->next_out) &&
         (knows_nothing || !wire::psn_before(flow->unacknowledged, before->unacknowledged)));
    if (!is_in_order || !fits) {
      throw Violation("§11",
                      fmt::format("ring {} rank {}: switch {} has a {:#x}, s {:#x}, e {:#x}, "
                                  "which is out of order{}",
                                  plan.spec.id, rank, node, flow->unacknowledged, flow->next_out,
                                  flow->next_in, is_in_order ? " with the switch before it" : ""));
    }
    before = flow;
  }
}

void Fabric::end_noise() {
  for (const auto& each : switches_) {
    each->end_noise();
  }
}

void Fabric::restart_all() {
  for (const auto& each : switches_) {
    each->restart_switch();
  }
}

void Fabric::make_ring(std::uint16_t ring, std::uint32_t nonce) {
  for (const auto& each : switches_) {
    each->make_ring(ring, nonce);
  }
}

void Fabric::expect_epoch(std::uint16_t ring, std::uint32_t generation) {
  for (const auto& each : switches_) {
    each->expect_epoch(ring, generation);
  }
}

void Fabric::notice_link_down(std::uint16_t place) {
  for (const std::uint16_t end : {place, scenario_.places[place].peer}) {
    const Place& at = scenario_.places[end];
    node(at.node).notice_ports_down(node(at.node).ports_down() | l2::set_of(at.port));
  }
}

void Fabric::notice_link_up(std::uint16_t place) {
  for (const std::uint16_t end : {place, scenario_.places[place].peer}) {
    const Place& at = scenario_.places[end];
    node(at.node).notice_ports_down(node(at.node).ports_down() & ~l2::set_of(at.port));
  }
}

void Fabric::expect_member(const AnswerWatch::Requester& requester) {
  for (const auto& each : switches_) {
    each->expect_member(requester);
  }
}

std::optional<std::uint32_t> Fabric::queue_pair_beside(std::uint16_t ring, std::uint16_t host) {
  const auto queue_pair = node(scenario_.places[host].node).queue_pair_beside(ring, host);
  for (const auto& each : switches_) {
    if (queue_pair) {
      each->expect_lie(host, *queue_pair);
    }
  }
  return queue_pair;
}

bool Fabric::was_misled(std::uint16_t ring) const {
  return std::ranges::any_of(switches_,
                             [ring](const auto& each) { return each->was_misled(ring); });
}

bool Fabric::was_cut_short(std::uint16_t ring) const {
  return scenario_.rings[ring].tree.has_several_switches() &&
         std::ranges::any_of(switches_,
                             [ring](const auto& each) { return each->has_displaced(ring); });
}

void Fabric::check_uplinks(std::uint16_t ring, std::uint64_t packets) const {
  for (std::uint16_t node = 0; node < nodes(); ++node) {
    const RingTree::Part& part = scenario_.rings[ring].tree.parts[node];
    if (!part.parent) {
      continue;
    }
    const std::uint16_t up = scenario_.place_between(node, *part.parent);
    for (const std::uint16_t place : {up, scenario_.places[up].peer}) {
      const auto found = notes_.carried.find({place, ring});
      const std::uint64_t carried = found == notes_.carried.end() ? 0 : found->second;
      if (carried != packets) {
        throw Violation("I10", fmt::format("ring {}: the link from place {} has carried {} packets "
                                           "for {} of each rank",
                                           scenario_.rings[ring].spec.id, place, carried, packets));
      }
    }
  }
}

bool Fabric::may_make_ranks_repeat(std::uint16_t ring) const {
  const auto is_of_all = [&](const auto& entry) {
    const auto& [of_ring, parent, packet] = entry.first;
    const auto lost = static_cast<std::size_t>(std::popcount(entry.second));
    return of_ring == ring && lost == scenario_.rings[ring].tree.parts[parent].children.size();
  };
  const auto has_asked = [ring](const auto& each) { return each->has_asked_late_rank(ring); };
  return notes_.lost_hellos.contains(ring) || std::ranges::any_of(notes_.lost_sums, is_of_all) ||
         std::ranges::any_of(switches_, has_asked);
}

std::string Fabric::waiting_of(std::uint16_t ring) const {
  std::string text;
  for (const auto& each : switches_) {
    text += each->waiting_of(ring);
  }
  return text;
}

} // namespace weir::fabric
