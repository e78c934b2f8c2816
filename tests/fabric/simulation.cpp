// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include "support/frame_builder.hpp"
#include "violation.hpp"
#include "wire/headers.hpp"

#include <algorithm>

namespace weir::fabric {
namespace {

constexpr std::uint64_t kMostEvents = 2'000'000;
constexpr Time kBound = 150; // ACK timeouts after the faults within which every job finishes
// For jobs that wait until they may use their queue pair numbers again.
constexpr Time kReuses = 20'000'000;
constexpr std::uint16_t kStreams = 2;
constexpr std::uint32_t kStreamQueuePair = 0xf00000;

/// The frame's destination; nullopt when it is too short.
std::optional<std::uint32_t> queue_pair_of(const Packet& packet) {
  constexpr std::size_t ethernet_type_at = 12;
  if (packet.length < sizeof(wire::EthernetHeader)) {
    return std::nullopt;
  }
  const bool is_ipv4 = packet.data[ethernet_type_at] == 0x08;
  const std::size_t bth_at = sizeof(wire::EthernetHeader) + sizeof(wire::UdpHeader) +
                             (is_ipv4 ? sizeof(wire::Ipv4Header) : sizeof(wire::Ipv6Header));
  if (packet.length < bth_at + sizeof(wire::Bth)) {
    return std::nullopt;
  }
  return wire::view_as<wire::Bth>(packet.data + bth_at).destination_qp.get();
}

} // namespace

Simulation::Simulation(std::uint64_t seed, Topology topology, Tracing tracing, Coverage& coverage)
    : world_(seed, tracing), coverage_(coverage), scenario_(draw_scenario(world_.dice, topology)),
      fabric_(world_, scenario_, seed, coverage), rogue_(world_, fabric_, scenario_, coverage),
      hosts_(scenario_.hosts) {}

Outcome Simulation::run() {
  Outcome outcome;
  try {
    set_up();
    run_until_finished();
    cover_dead_neighbours();
    fabric_.restart_all(); // finds leaked frames
  } catch (const Violation& violation) {
    outcome.invariant = violation.invariant();
    outcome.text = fmt::format("{} at {:.3f} us\n  {}", violation.what(),
                               static_cast<double>(world_.now) / 1000, describe());
  } catch (const std::exception& error) { // thrown by parts that were used wrongly
    outcome.invariant = "I4";
    outcome.text = error.what();
  }
  outcome.hash = fabric_.hash();
  return outcome;
}

void Simulation::set_up() {
  world_.tell("{}", fabric::describe(scenario_));
  const Member::Shared shared{world_, fabric_, scenario_, coverage_};
  for (std::uint16_t ring = 0; ring < scenario_.rings.size(); ++ring) {
    jobs_.push_back(std::make_unique<Job>(shared, scenario_.rings[ring], ring, hosts_, numbers_));
    jobs_.back()->schedule_epoch(world_.dice.below(3 * scenario_.ack_timeout));
  }
  for (std::uint16_t i = 0; i < scenario_.faults.size(); ++i) {
    world_.events.push(
        {.time = scenario_.faults[i].begins, .kind = EventKind::fault_begins, .place = i});
    world_.events.push(
        {.time = scenario_.faults[i].ends, .kind = EventKind::fault_ends, .place = i});
  }
  for (std::uint32_t i = 0; i < scenario_.rogue_acts; ++i) {
    world_.events.push({.time = world_.dice.below(scenario_.faults_end), .kind = EventKind::rogue});
  }
  for (std::uint32_t i = 0; i < scenario_.stream_frames; ++i) {
    world_.events.push({.time = world_.dice.below(scenario_.faults_end),
                        .kind = EventKind::stream,
                        .place = static_cast<std::uint16_t>(i % kStreams)});
  }
}

void Simulation::run_until_finished() {
  while (!is_finished()) {
    if (world_.events.empty()) {
      throw Violation("I3", "nothing will ever happen again");
    }
    const Event event = world_.events.pop();
    world_.now = event.time;
    if (is_noisy_ && world_.now >= scenario_.faults_end) {
      is_noisy_ = false;
      fabric_.end_noise();
      world_.tell("the faults are over");
    }
    check_deadline();
    dispatch(event);
  }
}

bool Simulation::is_finished() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    return !job->must_finish() || job->state() == Job::State::finished;
  });
}

void Simulation::cover_dead_neighbours() {
  for (const auto& living : jobs_) {
    const bool has_dead_neighbour = std::ranges::any_of(jobs_, [&](const auto& dead) {
      return dead->state() == Job::State::abandoned && dead->ended_at() < living->ended_at() &&
             living->shares_links_with(*dead);
    });
    if (living->state() == Job::State::finished && has_dead_neighbour) {
      coverage_.hit(Row::dead_neighbour);
    }
  }
}

void Simulation::check_deadline() {
  if (++events_ > kMostEvents) {
    throw Violation("I3", "events without end");
  }
  const Time bound =
      (scenario_.has_several_switches() ? 3 * kBound : kBound) * scenario_.ack_timeout;
  if (world_.now > scenario_.faults_end + bound + kReuses) {
    throw Violation("I3", "jobs have not finished, long after the faults ended");
  }
}

void Simulation::dispatch(const Event& event) {
  switch (event.kind) {
  case EventKind::at_switch:
    return at_switch(event);
  case EventKind::at_port:
    return at_port(event);
  case EventKind::timer:
  case EventKind::application:
    return wake_member(event);
  case EventKind::start_member:
    return jobs_[event.place]->start_member(event.rank, event.generation);
  case EventKind::stop_member:
    return jobs_[event.place]->stop_member(event.rank, event.generation);
  case EventKind::start_epoch:
    return jobs_[event.place]->start_epoch();
  case EventKind::fault_begins:
    return begin_fault(scenario_.faults[event.place]);
  case EventKind::fault_ends:
    return end_fault(scenario_.faults[event.place]);
  case EventKind::rogue:
    return rogue_.act();
  case EventKind::rogue_asks:
    return rogue_.ask_on();
  case EventKind::ghosts:
    return rogue_.repeat_hellos(event.place);
  case EventKind::stream:
    return send_stream_frame(event.place);
  case EventKind::look:
    return fabric_.node(event.place).poll_timers();
  case EventKind::helper:
    return fabric_.node(event.place).let_helper_sum();
  case EventKind::handover:
    return fabric_.node(event.place).let_workers_take_over();
  }
}

void Simulation::at_switch(const Event& event) {
  Packet& packet = *event.packet;
  world_.tell("port {}: QP {:#x}, {} bytes", event.place, queue_pair_of(packet).value_or(0),
              packet.length);
  const bool is_data =
      packet.origin.kind == Origin::Kind::member && packet.length > 100 && !packet.is_damaged;
  const bool is_answer = is_hosts_answer(packet) && !packet.is_damaged;
  if ((is_data || is_answer) && scenario_.rogue_acts != 0) {
    rogue_.notice(packet, event.place);
  }
  fabric_.accept(event.place, packet);
  const std::uint16_t node = scenario_.places[event.place].node;
  for (std::uint16_t ring = 0; ring < jobs_.size(); ++ring) {
    if (scenario_.rings[ring].tree.parts[node].exists()) {
      jobs_[ring]->notice_incarnation(node, fabric_.node(node).nonce_of(ring));
    }
  }
}

void Simulation::at_port(const Event& event) {
  Packet& packet = *event.packet;
  if (event.place >= scenario_.hosts || !hosts_[event.place].is_alive) {
    return world_.packets.free(packet);
  }
  if (hosts_[event.place].frozen_until > world_.now) {
    Event later = event;
    later.time = hosts_[event.place].frozen_until;
    return world_.events.push(later);
  }
  deliver(event.place, packet);
  world_.packets.free(packet);
}

void Simulation::deliver(std::uint16_t host, Packet& packet) {
  const auto queue_pair = queue_pair_of(packet);
  const auto& ethernet = wire::view_as<wire::EthernetHeader>(packet.data);
  if (!queue_pair || ethernet.destination != mac_of_host(host)) {
    return;
  }
  for (const auto& job : jobs_) {
    if (Member* const member = job->member_with(host, *queue_pair)) {
      world_.tell("host {} takes QP {:#x}", host, *queue_pair);
      member->receive(packet);
      return job->review();
    }
  }
}

void Simulation::wake_member(const Event& event) {
  Job& job = *jobs_[event.place];
  Member* const member = job.member(event.rank, event.generation);
  if (member == nullptr) {
    return;
  }
  if (const Time thaw = hosts_[member->host()].frozen_until; thaw > world_.now) {
    Event later = event;
    later.time = thaw;
    return world_.events.push(later);
  }
  if (event.kind == EventKind::timer) {
    member->timer();
  } else {
    member->pump();
  }
  job.review();
}

void Simulation::begin_fault(const Fault& fault) {
  coverage_.hit(fault.kind);
  world_.tell("fault: {} ({})", name_of(fault.kind), fault.place);
  switch (fault.kind) {
  case FaultKind::uplink_down:
    fabric_.notice_link_down(fault.place);
    [[fallthrough]];
  case FaultKind::link_down:
    fabric_.inward(fault.place).set_down();
    fabric_.outward(fault.place).set_down();
    break;
  case FaultKind::answers_lost:
  case FaultKind::uplink_deaf:
    fabric_.inward(fault.place).swallow_answers();
    fabric_.outward(fault.place).swallow_answers();
    break;
  case FaultKind::host_frozen:
    hosts_[fault.place].frozen_until = std::max(hosts_[fault.place].frozen_until, fault.ends);
    break;
  case FaultKind::straggler:
    jobs_[fault.place]->stall_member(fault.rank, fault.ends);
    break;
  case FaultKind::host_dies:
    hosts_[fault.place].is_alive = false;
    for (const auto& job : jobs_) {
      job->host_died(fault.place);
    }
    break;
  case FaultKind::switch_restarts:
    restart_switch(fault.node);
    break;
  case FaultKind::rank_killed:
    jobs_[fault.place]->kill_member(fault.rank);
    break;
  case FaultKind::ring_reset:
    reset_ring(fault);
    break;
  case FaultKind::ring_away:
    at_switches_of(fault, [&](FabricSwitch& each) { each.withdraw_ring(fault.place); });
    jobs_[fault.place]->excuse();
    break;
  case FaultKind::ring_pauses:
    at_switches_of(fault, [&](FabricSwitch& each) { each.drain_ring(fault.place); });
    break;
  case FaultKind::ring_withdrawn:
    fabric_.node(fault.node).withdraw_ring(fault.place);
    break;
  case FaultKind::ring_drained:
    fabric_.node(fault.node).drain_ring(fault.place);
    break;
  case FaultKind::ring_forgotten:
    fabric_.node(fault.node).forget_ring(fault.place);
    rogue_.use_restart();
    for (const auto& job : jobs_) {
      job->excuse();
    }
    break;
  case FaultKind::count:
    break;
  }
}

/// The fault's switch, or all of them, one after the other.
template <typename Act>
void Simulation::at_switches_of(const Fault& fault, Act&& act) {
  for (std::uint16_t node = 0; node < fabric_.nodes(); ++node) {
    if (fault.node == node || fault.node == kEverySwitch) {
      act(fabric_.node(node));
    }
  }
}

void Simulation::restart_switch(std::uint16_t node) {
  fabric_.node(node).restart_switch();
  rogue_.use_restart();
  for (const auto& job : jobs_) {
    job->note_calls(CallEvent::restart);
    job->excuse();
  }
}

/// Resets a ring, sometimes followed by late copies of its hellos.
void Simulation::reset_ring(const Fault& fault) {
  const std::uint16_t ring = fault.place;
  at_switches_of(fault, [ring](FabricSwitch& each) { each.reset_ring(ring); });
  jobs_[ring]->excuse();
  if (scenario_.replays != 0 && world_.dice.chance(50 * kPercent)) {
    rogue_.bury_connections();
    world_.events.push(
        {.time = world_.now + scenario_.round_trip, .kind = EventKind::ghosts, .place = ring});
  }
}

void Simulation::end_fault(const Fault& fault) {
  switch (fault.kind) {
  case FaultKind::uplink_down:
    fabric_.notice_link_up(fault.place);
    [[fallthrough]];
  case FaultKind::link_down:
    fabric_.inward(fault.place).set_up();
    fabric_.outward(fault.place).set_up();
    break;
  case FaultKind::answers_lost:
  case FaultKind::uplink_deaf:
    fabric_.inward(fault.place).pass_answers();
    fabric_.outward(fault.place).pass_answers();
    break;
  case FaultKind::host_dies:
    hosts_[fault.place].is_alive = true;
    break;
  case FaultKind::ring_away:
  case FaultKind::ring_pauses:
    at_switches_of(fault, [&](FabricSwitch& each) {
      each.withdraw_ring(fault.place);
      each.add_ring(fault.place);
    });
    jobs_[fault.place]->excuse();
    break;
  default:
    break;
  }
}

/// Stream 0 is no RoCE; stream 1 is a plain queue pair between two ring neighbours.
void Simulation::send_stream_frame(std::uint16_t stream) {
  coverage_.hit(Happening::stream_frames);
  const RingPlan& ring = scenario_.rings.front();
  test::FrameSpec spec;
  spec.network = scenario_.is_ipv6 ? test::Network::ipv6 : test::Network::ipv4;
  spec.source_mac = mac_of_host(ring.hosts[0]);
  spec.destination_mac = mac_of_host(ring.hosts[1]);
  spec.source = ring.spec.members[0].ip;
  spec.destination = ring.spec.members[1].ip;
  spec.qp = kStreamQueuePair;
  spec.udp_destination = stream == 0 ? 5000 : 4791;
  spec.payload = test::Bytes(24, 0x22);
  Packet& packet = world_.packets.make(test::build(spec).bytes);
  packet.origin = {.kind = Origin::Kind::stream, .ring = stream};
  fabric_.send(ring.hosts[0], packet);
}

/// The run has failed, so nothing about its state can be relied on here.
std::string Simulation::describe() const {
  std::string text = fabric::describe(scenario_);
  try {
    for (std::uint16_t ring = 0; ring < jobs_.size(); ++ring) {
      text += "\n  " + jobs_[ring]->describe() + "\n    the switch:" + fabric_.waiting_of(ring);
    }
  } catch (const std::exception& error) {
    text += fmt::format("\n    the switch's slots are in no state to be told: {}", error.what());
  }
  return text;
}

} // namespace weir::fabric
