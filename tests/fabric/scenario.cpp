// SPDX-License-Identifier: BSD-3-Clause
#include "scenario.hpp"

#include "operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace weir::fabric {
namespace {

constexpr std::uint16_t kMtu = 256;
constexpr Time kMicrosecond = 1000;
constexpr std::uint32_t kAllCalls = UINT32_MAX;
constexpr std::uint64_t kLongestDelay = 4;                  // units
constexpr Time kLeastKeptAlive = std::uint64_t{4096} << 12; // ACK timeout that the switch believes

/// The quality of the network.
enum class Weather : std::uint8_t { calm, lossy, stormy };

Weather draw_weather(Dice& dice) {
  return dice.pick({Weather::calm, Weather::lossy, Weather::lossy, Weather::lossy, Weather::stormy,
                    Weather::stormy});
}

LinkTraits draw_link(Dice& dice, Weather weather, const LinkTraits& like) {
  LinkTraits traits = like;
  traits.delay *= dice.between(1, kLongestDelay);
  if (weather == Weather::calm || dice.chance(15 * kPercent)) {
    return traits;
  }
  const Ppm worst = weather == Weather::lossy ? 6 * kPercent : 25 * kPercent;
  const auto up_to = [&](Ppm most) { return static_cast<Ppm>(dice.below(most)); };
  traits.loss = up_to(worst);
  traits.answer_loss = dice.chance(35 * kPercent) ? up_to(60 * kPercent) : traits.loss;
  traits.duplication = dice.chance(50 * kPercent) ? up_to(worst) : 0;
  traits.corruption = dice.chance(50 * kPercent) ? up_to(worst / 2) : 0;
  return traits;
}

/// A port of the switch more.
void add_place(Scenario& scenario, std::uint16_t node, Place::End end) {
  scenario.places_of.resize(std::max<std::size_t>(scenario.places_of.size(), node + 1u));
  std::vector<std::uint16_t>& ports = scenario.places_of[node];
  ports.push_back(static_cast<std::uint16_t>(scenario.places.size()));
  scenario.places.push_back({node, static_cast<std::uint16_t>(ports.size() - 1), end});
}

/// Ports for all hosts, for a stranger on each switch, and for the links between switches.
void add_places(Scenario& scenario) {
  const Layout& layout = scenario.layout;
  for (std::uint16_t host = 0; host < scenario.hosts; ++host) {
    add_place(scenario, layout.homes[host], Place::End::host);
  }
  for (std::uint16_t node = 0; node < layout.nodes(); ++node) {
    add_place(scenario, node, Place::End::stranger);
  }
  for (std::uint16_t node = 1; node < layout.nodes(); ++node) {
    const auto lower = static_cast<std::uint16_t>(scenario.places.size());
    add_place(scenario, node, Place::End::peer);
    add_place(scenario, layout.above[node], Place::End::peer);
    scenario.places[lower].peer = lower + 1u;
    scenario.places[lower + 1u].peer = lower;
  }
}

/// Long enough for a switch to mend what it can, so that no rank repeats anything.
constexpr Time kLongTimeout = 200 * kMillisecond;

/// Only links between switches lose, or none does.
void draw_links_for_quest(Scenario& scenario, Dice& dice) {
  // A switch asks for what is late by the least T, which looks like a loss.
  scenario.unit = scenario.quest == Quest::no_loss ? kMicrosecond / 4 : kMicrosecond;
  LinkTraits like;
  like.delay = scenario.unit;
  for (const Place& place : scenario.places) {
    const bool is_lossy = scenario.quest == Quest::lossy_uplinks && place.end == Place::End::peer;
    const Weather weather = is_lossy ? Weather::lossy : Weather::calm;
    scenario.to_switch.push_back(draw_link(dice, Weather::calm, like));
    LinkTraits& away = scenario.from_switch.emplace_back(draw_link(dice, weather, like));
    away.answer_loss = away.corruption = 0; // a lost acknowledgement may make a rank repeat
  }
  scenario.round_trip = 2u * (2u + scenario.layout.diameter()) * kLongestDelay * scenario.unit;
  scenario.ack_timeout = std::max(kLongTimeout, 40 * scenario.round_trip);
}

void draw_links(Scenario& scenario, Dice& dice) {
  if (scenario.quest != Quest::anything) {
    return draw_links_for_quest(scenario, dice);
  }
  const Weather weather = draw_weather(dice);
  // Timers of the switch count from microseconds to minutes.
  scenario.unit = dice.pick<Time>({1, 1, 1, 20, 300}) * kMicrosecond;
  LinkTraits like;
  like.delay = scenario.unit;
  like.spread = dice.pick<Time>({0, 0, 5 * scenario.unit, 30 * scenario.unit});
  like.order =
      dice.pick({LinkTraits::Order::kept, LinkTraits::Order::kept, LinkTraits::Order::free});
  for (std::size_t place = 0; place < scenario.places.size(); ++place) {
    scenario.to_switch.push_back(draw_link(dice, weather, like));
    scenario.from_switch.push_back(draw_link(dice, weather, like));
  }
  const unsigned links = 2u * (2u + scenario.layout.diameter());
  scenario.round_trip = links * (kLongestDelay * scenario.unit + like.spread);
  // Sometimes too short, so that everything is repeated.
  const Time tenths = dice.pick<Time>({8, 13, 13, 20, 40});
  scenario.ack_timeout = scenario.round_trip * tenths / 10;
  if (scenario.has_several_switches()) { // hellos climb four times in it
    scenario.ack_timeout = std::max(scenario.ack_timeout, kLeastKeptAlive);
  }
}

/// A few calls of some messages, or many small ones.
void draw_calls(Dice& dice, RingPlan& ring, std::uint64_t packets_per_message) {
  const bool are_many = dice.chance(20 * kPercent);
  const std::uint64_t count =
      are_many ? dice.between(5, 12) : dice.pick<std::uint64_t>({1, 1, 2, 2, 3, 4});
  const std::uint64_t packets = packets_per_message * ring.spec.world();
  const std::uint64_t most = are_many ? 1 : std::max<std::uint64_t>(2, 16 / packets);
  for (std::uint64_t i = 0; i < count; ++i) {
    ring.calls.push_back(draw_call(dice, ring.spec, most));
  }
  ring.pauses = std::min<Ppm>(50 * kPercent, static_cast<Ppm>(2 * kAlways / count));
}

std::vector<std::uint16_t> draw_hosts(Dice& dice, std::uint16_t hosts, std::uint64_t count) {
  std::vector<std::uint16_t> order(hosts);
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    std::swap(order[i], order[i + dice.below(order.size() - i)]);
  }
  order.resize(count);
  return order;
}

/// The ring's ranks wait for one another longer than their retries last. So the switch has to keep
/// them alive, in the way that their stack obeys.
void await_stragglers(RingPlan& ring) {
  constexpr Time longer_than_all_retries = 12; // ACK timeouts
  ring.lateness = longer_than_all_retries;
  ring.stacks.assign(ring.stacks.size(), endpoint::Stack::soft_roce);
  ring.reuse = 0;
  ring.tells = Tells::own;
  ring.spec.patience_ms = kEndlessPatience;
  ring.spec.keep_alive = ring::KeepAlive::ack;
  ring.jobs = 1;
}

/// Each switch on the way must know whose answers pass, and hellos climb while patience lasts.
void suit_tree(RingPlan& ring, const Scenario& scenario) {
  constexpr std::uint64_t timeouts = 20;
  const std::uint64_t least = timeouts * scenario.ack_timeout / kMillisecond + 1;
  ring.tells = Tells::own;
  ring.spec.patience_ms = std::max(ring.spec.patience_ms, least);
}

/// Nobody computes for longer than the ranks' timers last, and nothing ends.
void be_quiet(RingPlan& ring, Quest quest) {
  ring.stacks.assign(ring.stacks.size(), endpoint::Stack::soft_roce); // obeys what keeps it alive
  ring.reuse = 0;
  ring.jobs = 1;
  ring.pauses = 0;
  ring.spec.patience_ms = kEndlessPatience;
  ring.spec.keep_alive = ring::KeepAlive::ack;
  if (quest == Quest::lossy_uplinks) { // who waits for acknowledgements is late, and asked
    ring.calls_ahead.assign(ring.calls_ahead.size(), kAllCalls);
    ring.packets_in_flight = std::max(4u, ring.spec.depth() * ring.spec.packets_per_message());
  }
}

RingPlan draw_ring(Dice& dice, const Scenario& scenario, std::uint32_t id) {
  RingPlan ring;
  ring.spec.id = id;
  ring.spec.mtu = kMtu;
  ring.spec.window = static_cast<std::uint32_t>(dice.between(1, 4));
  const std::uint64_t packets = dice.between(1, 5);
  ring.spec.max_message_bytes =
      static_cast<std::uint32_t>((packets - 1) * kMtu + dice.between(56, kMtu));
  const std::uint64_t world =
      dice.chance(60 * kPercent) ? scenario.hosts : dice.between(2, scenario.hosts);
  ring.hosts = draw_hosts(dice, scenario.hosts, world);
  ring.is_pinned = dice.chance(50 * kPercent);
  ring.tree = scenario.has_several_switches() ? RingTree::draw(dice, scenario.layout, ring.hosts)
                                              : RingTree::star(static_cast<std::uint16_t>(world));
  for (const std::uint16_t host : ring.hosts) {
    ring.spec.members.push_back({ip_of_host(host, scenario.is_ipv6), std::nullopt});
  }
  const auto flight = static_cast<std::uint32_t>(ring.spec.window * packets);
  ring.packets_in_flight = std::max(4u, flight * dice.pick({1u, 1u, 2u, 3u}));
  for (std::size_t rank = 0; rank < world; ++rank) {
    ring.stacks.push_back(dice.pick({endpoint::Stack::ibta, endpoint::Stack::soft_roce}));
    ring.carriers.push_back(dice.pick({Carrier::write, Carrier::send, Carrier::mixed}));
    ring.calls_ahead.push_back(dice.pick({1u, 1u, 2u, 3u, kAllCalls}));
  }
  ring.near_wrap = dice.pick<Ppm>({0, kAlways});
  ring.reuse = dice.pick<Ppm>({0, 0, 0, 50 * kPercent});
  ring.psns = dice.pick({FirstPsns::elsewhere, FirstPsns::again});
  ring.tells = dice.chance(15 * kPercent) ? Tells::nothing : Tells::own;
  // A queue pair number may be used again when the switch's patience has ended.
  ring.spec.patience_ms =
      ring.reuse != 0 ? 2 : dice.pick({std::uint64_t{10}, kEndlessPatience, kEndlessPatience});
  ring.spec.keep_alive =
      dice.pick({ring::KeepAlive::ack, ring::KeepAlive::ack, ring::KeepAlive::ack,
                 ring::KeepAlive::rnr, ring::KeepAlive::off});
  ring.jobs = dice.chance(20 * kPercent) ? 2 : 1;
  if (scenario.ack_timeout >= kLeastKeptAlive && scenario.quest == Quest::anything &&
      dice.chance(30 * kPercent)) {
    await_stragglers(ring);
  }
  ring.first_epoch = static_cast<std::uint32_t>(dice.pick<std::uint64_t>({0, 1, 7, 0xfffffff0}));
  draw_calls(dice, ring, packets);
  if (ring.tree.has_several_switches()) {
    suit_tree(ring, scenario);
  }
  if (scenario.quest != Quest::anything) {
    be_quiet(ring, scenario.quest);
  }
  return ring;
}

/// An attacked ring's ranks claim queue pairs that others have told the switch. It speaks to
/// neither then, so none of the others may need to be kept alive.
void draw_lies(Scenario& scenario, Dice& dice) {
  RingPlan& last = scenario.rings.back();
  const bool all_tell = std::ranges::all_of(scenario.rings, [](const RingPlan& ring) {
    return ring.tells == Tells::own && ring.reuse == 0 && ring.lateness == 1;
  });
  if (last.role == RingRole::victim && all_tell && dice.chance(60 * kPercent)) {
    last.tells = Tells::anothers;
  }
}

/// A rank of a doomed ring calls something else than the others, in most of them.
void draw_dispute(Dice& dice, RingPlan& ring) {
  Dispute dispute{.rank = static_cast<std::uint16_t>(dice.below(ring.hosts.size())),
                  .call = static_cast<std::uint32_t>(dice.below(ring.calls.size()))};
  const auto other = draw_disagreeing(dice, ring.calls[dispute.call], ring.spec.world());
  if (ring.role == RingRole::doomed && other) {
    dispute.plan = *other;
    ring.dispute = dispute;
  }
}

/// Groups have the switch make their ring. By dice of its own: a seed without such rings runs as it
/// would if there were none.
void draw_made_rings(Scenario& scenario, const Dice& dice) {
  Dice copy = dice;
  Dice own(copy.next() ^ 0x6d616465);
  for (RingPlan& ring : scenario.rings) {
    ring.is_made = own.chance(25 * kPercent) && ring.role == RingRole::sound;
  }
}

/// Calls by operators of the users' own, in rings where a hello has room for their table. By dice
/// of its own, likewise.
void draw_operators(Scenario& scenario, const Dice& dice) {
  Dice copy = dice;
  Dice own(copy.next() ^ 0x6f706572);
  constexpr std::size_t with_table = kInaHeaderBytes + kOperatorTexts * sizeof(wire::OperatorEntry);
  for (RingPlan& ring : scenario.rings) {
    const bool may_have = ring.role != RingRole::victim && !ring.dispute &&
                          ring.spec.max_message_bytes >= with_table &&
                          scenario.quest == Quest::anything;
    if (!own.chance(20 * kPercent) || !may_have) {
      continue;
    }
    ring.has_operators = true;
    if (own.chance(30 * kPercent)) {
      const auto& parts = ring.tree.parts;
      const auto node = static_cast<std::uint16_t>(own.below(parts.size()));
      ring.lacks_one = parts[node].exists() ? std::optional(node) : std::nullopt;
    }
    const std::uint64_t usable = ring.lacks_one ? 1 : kOperatorTexts;
    for (CallPlan& plan : ring.calls) {
      const bool is_whole =
          plan.call.kind == host::CallKind::all_reduce || plan.call.kind == host::CallKind::reduce;
      if (is_whole && plan.parts.empty() && own.chance(70 * kPercent)) {
        plan.call.count = plan.own_bytes() / kOperatorUnit * kOperatorUnit;
        plan.call.type = kAsOperator;
        plan.call.operation = static_cast<Operation>(kFirstOperator + own.below(usable));
      }
    }
  }
}

/// Switches of a tree lie to one another. By dice of its own, likewise.
void draw_attacked_trees(Scenario& scenario, const Dice& dice) {
  Dice copy = dice;
  Dice own(copy.next() ^ 0x6c696573);
  RingPlan& last = scenario.rings.back();
  if (scenario.rings.size() > 1 && scenario.quest == Quest::anything &&
      last.tree.has_several_switches() && own.chance(60 * kPercent)) {
    last.role = RingRole::victim;
  }
}

/// A job has parallel rings, of which each worker of a switch has some. By dice of its own,
/// likewise.
void draw_parallel_rings(Scenario& scenario, const Dice& dice) {
  Dice copy = dice;
  Dice own(copy.next() ^ 0x706172);
  if (!own.chance(34 * kPercent)) {
    return;
  }
  scenario.workers = static_cast<std::uint16_t>(own.between(2, 3));
  for (std::uint64_t more = own.between(1, 2); more != 0; --more) {
    RingPlan parallel = scenario.rings.front();
    parallel.spec.id = static_cast<std::uint32_t>(20 + more);
    scenario.rings.insert(scenario.rings.begin() + 1, std::move(parallel));
  }
}

void draw_rings(Scenario& scenario, Dice& dice) {
  const std::uint64_t count = dice.pick<std::uint64_t>({1, 1, 1, 2, 2, 3});
  for (std::uint32_t i = 0; i < count; ++i) {
    scenario.rings.push_back(draw_ring(dice, scenario, 10 + i));
  }
  draw_parallel_rings(scenario, dice);
  if (count > 1 && scenario.quest == Quest::anything &&
      dice.chance(50 * kPercent)) { // the first ring is always sound
    scenario.rings.back().role = dice.pick({RingRole::victim, RingRole::doomed});
  }
  draw_attacked_trees(scenario, dice);
  draw_made_rings(scenario, dice);
  draw_lies(scenario, dice);
  draw_dispute(dice, scenario.rings.back());
  draw_operators(scenario, dice);
}

/// A switch with a part in the ring.
std::uint16_t draw_node(Dice& dice, const RingPlan& ring) {
  for (;;) {
    const auto node = static_cast<std::uint16_t>(dice.below(ring.tree.parts.size()));
    if (ring.tree.parts[node].exists()) {
      return node;
    }
  }
}

/// Where it happens, if there are several switches.
void draw_where(Dice& dice, const Scenario& scenario, Fault& fault) {
  switch (fault.kind) {
  case FaultKind::uplink_down:
  case FaultKind::uplink_deaf: // the last places
    fault.place = static_cast<std::uint16_t>(scenario.places.size() - 1 -
                                             dice.below(2u * (scenario.places_of.size() - 1)));
    return;
  case FaultKind::ring_away:
  case FaultKind::ring_pauses:
    fault.place = static_cast<std::uint16_t>(dice.below(scenario.rings.size()));
    [[fallthrough]];
  case FaultKind::ring_reset:
    fault.node =
        dice.chance(20 * kPercent) ? kEverySwitch : draw_node(dice, scenario.rings[fault.place]);
    return;
  default:
    fault.node = static_cast<std::uint16_t>(dice.below(scenario.places_of.size()));
    return;
  }
}

Fault draw_fault(Dice& dice, const Scenario& scenario, FaultKind kind) {
  Fault fault{.kind = kind};
  fault.begins = dice.below(scenario.faults_end);
  const Time most = scenario.faults_end - fault.begins;
  const Time longest = scenario.ack_timeout * (dice.chance(80 * kPercent) ? 4 : 12);
  fault.ends = fault.begins + std::min<Time>(most, dice.below(longest) + 1);
  if (kind == FaultKind::straggler || kind == FaultKind::ring_reset ||
      kind == FaultKind::rank_killed) {
    fault.place = static_cast<std::uint16_t>(dice.below(scenario.rings.size()));
    fault.rank = static_cast<std::uint16_t>(dice.below(scenario.rings[fault.place].hosts.size()));
  } else {
    fault.place = static_cast<std::uint16_t>(dice.below(scenario.hosts));
  }
  if (scenario.has_several_switches()) {
    draw_where(dice, scenario, fault);
  }
  return fault;
}

/// Acknowledgements are lost everywhere; then the switch is replaced or the first ring reset. So
/// all hosts go back to messages whose result some have already.
void draw_treacherous_restart(Scenario& scenario, Dice& dice) {
  const Time restart = dice.below(scenario.faults_end);
  const Time before = std::min(restart, dice.below(2 * scenario.ack_timeout) + 1);
  for (std::uint16_t host = 0; host < scenario.hosts; ++host) {
    scenario.faults.push_back({FaultKind::answers_lost, restart - before,
                               std::min(scenario.faults_end, restart + scenario.round_trip), host});
  }
  Fault fault{.kind = dice.pick({FaultKind::switch_restarts, FaultKind::ring_reset}),
              .begins = restart,
              .ends = restart};
  if (scenario.has_several_switches()) {
    draw_where(dice, scenario, fault);
  }
  scenario.faults.push_back(fault);
}

FaultKind draw_kind(Dice& dice) {
  return dice.pick({FaultKind::link_down, FaultKind::answers_lost, FaultKind::answers_lost,
                    FaultKind::host_frozen, FaultKind::straggler, FaultKind::straggler,
                    FaultKind::host_dies, FaultKind::switch_restarts, FaultKind::switch_restarts,
                    FaultKind::ring_reset, FaultKind::rank_killed, FaultKind::rank_killed});
}

FaultKind draw_kind_in_tree(Dice& dice) {
  return dice.pick({FaultKind::uplink_down, FaultKind::uplink_deaf, FaultKind::uplink_deaf,
                    FaultKind::switch_restarts, FaultKind::ring_reset, FaultKind::ring_away,
                    FaultKind::ring_pauses});
}

/// A ring that is added gets the number of the one that was withdrawn first: one at a time.
bool takes_a_ring_away(FaultKind kind) {
  return kind == FaultKind::ring_away || kind == FaultKind::ring_pauses;
}

void draw_faults(Scenario& scenario, Dice& dice) {
  const std::uint64_t most = scenario.has_several_switches() ? 8 : 25; // timeouts are long there
  scenario.faults_end = scenario.ack_timeout * dice.between(3, most);
  if (scenario.quest != Quest::anything) {
    return;
  }
  const std::uint64_t count = dice.pick<std::uint64_t>({0, 1, 1, 2, 3, 5});
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool is_trees = scenario.has_several_switches() && dice.chance(50 * kPercent);
    FaultKind kind = is_trees ? draw_kind_in_tree(dice) : draw_kind(dice);
    if (takes_a_ring_away(kind) &&
        std::ranges::any_of(scenario.faults, takes_a_ring_away, &Fault::kind)) {
      kind = FaultKind::switch_restarts;
    }
    scenario.faults.push_back(draw_fault(dice, scenario, kind));
  }
  if (dice.chance(10 * kPercent)) {
    draw_treacherous_restart(scenario, dice);
  }
  const bool is_one_away = std::ranges::any_of(scenario.faults, takes_a_ring_away, &Fault::kind);
  if (scenario.rings.back().role == RingRole::doomed && !is_one_away &&
      dice.chance(50 * kPercent)) {
    const auto kind =
        dice.pick({FaultKind::ring_withdrawn, FaultKind::ring_forgotten, FaultKind::ring_drained});
    Fault fault = draw_fault(dice, scenario, kind);
    fault.place = static_cast<std::uint16_t>(scenario.rings.size() - 1);
    fault.node = scenario.has_several_switches() ? draw_node(dice, scenario.rings.back()) : 0;
    scenario.faults.push_back(fault);
  }
}

} // namespace

std::string_view name_of(FaultKind kind) {
#define WEIR_FABRIC_NAME(name, text) #name,
  static constexpr std::array<std::string_view, kFaultKinds> names{
      WEIR_FABRIC_FAULTS(WEIR_FABRIC_NAME)};
#undef WEIR_FABRIC_NAME
  return names[static_cast<std::size_t>(kind)];
}

wire::IpAddress ip_of_host(std::uint16_t host, bool is_ipv6) {
  const auto number = static_cast<std::uint8_t>(host + 1);
  if (!is_ipv6) {
    return wire::IpAddress::from_v4(std::array<std::uint8_t, 4>{10, 50, 0, number}.data());
  }
  wire::IpAddress address;
  address.bytes = {0xfd, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
  return address;
}

wire::MacAddress mac_of_host(std::uint16_t host) {
  return {{0x02, 0x50, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
}

namespace {

/// Of nobody: in the place of a ring that a switch has no part in.
ring::RingSpec nobodys_ring(std::uint16_t ring) {
  ring::RingSpec spec;
  spec.id = 850u + ring;
  spec.window = 1;
  spec.mtu = kMtu;
  spec.max_message_bytes = kMtu;
  for (std::uint8_t member = 1; member <= 2; ++member) {
    const std::array<std::uint8_t, 4> address{10, 97, static_cast<std::uint8_t>(ring), member};
    spec.members.push_back({wire::IpAddress::from_v4(address.data()), std::nullopt});
  }
  return spec;
}

} // namespace

/// A ring of one switch gives its members ports.
ring::RingSpec Scenario::spec(std::uint16_t ring, std::uint16_t node) const {
  const RingPlan& plan = rings[ring];
  const RingTree::Part& part = plan.tree.parts[node];
  if (!part.exists()) {
    return nobodys_ring(ring);
  }
  const auto port_of_rank = [&](std::uint16_t rank) {
    return plan.is_pinned ? std::optional(places[plan.hosts[rank]].port) : std::nullopt;
  };
  ring::RingSpec spec = plan.spec;
  if (!plan.tree.has_several_switches()) {
    for (std::uint16_t rank = 0; rank < spec.world(); ++rank) {
      spec.members[rank].port = port_of_rank(rank);
    }
    return spec;
  }
  for (const RingTree::Child& child : part.children) {
    spec.children.push_back(
        {.ranks = child.ranks,
         .port = child.node ? places[place_between(node, *child.node)].port
                            : port_of_rank(child.ranks.first),
         .kind = child.node ? ring::ChildKind::switch_below : ring::ChildKind::rank,
         .name = child.node ? fmt::format("switch {}", *child.node) : ""});
  }
  if (part.parent) {
    spec.parent = {.port = places[place_between(node, *part.parent)].port,
                   .name = fmt::format("switch {}", *part.parent)};
  }
  return spec;
}

/// The script's ring is on switch 0 alone.
std::vector<ring::RingSpec> Scenario::specs(std::uint16_t node) const {
  std::vector<ring::RingSpec> specs;
  for (std::uint16_t ring = 0; ring < rings.size(); ++ring) {
    specs.push_back(spec(ring, node));
  }
  if (node == 0) {
    specs.push_back(script_ring());
  }
  return specs;
}

std::vector<ring::RingSpec> Scenario::specs_without(std::uint16_t ring, std::uint16_t node) const {
  constexpr std::uint32_t nobodys = 800;
  std::vector<ring::RingSpec> others = specs(node);
  others[ring].id = nobodys;
  return others;
}

bool Scenario::is_known(std::uint16_t ring, Time now) const {
  return std::ranges::none_of(faults, [&](const Fault& fault) {
    const bool ends_it = fault.kind == FaultKind::ring_withdrawn ||
                         fault.kind == FaultKind::ring_forgotten || takes_a_ring_away(fault.kind);
    return ends_it && fault.place == ring && now >= fault.begins;
  });
}

std::uint16_t Scenario::place_between(std::uint16_t node, std::uint16_t other) const {
  return *std::ranges::find_if(places_of[node], [&](std::uint16_t place) {
    return places[place].end == Place::End::peer && places[places[place].peer].node == other;
  });
}

Scenario draw_scenario(Dice& dice, Topology topology) {
  Scenario scenario;
  if (topology == Topology::tree) {
    scenario.layout = Layout::draw(dice);
    scenario.quest =
        dice.pick({Quest::anything, Quest::anything, Quest::anything, Quest::anything,
                   Quest::anything, Quest::anything, Quest::lossy_uplinks, Quest::no_loss});
  } else {
    const bool is_large = dice.chance(4 * kPercent);
    scenario.layout = Layout::star(static_cast<std::uint16_t>(is_large ? 8 : dice.between(2, 5)));
  }
  scenario.hosts = static_cast<std::uint16_t>(scenario.layout.homes.size());
  scenario.is_ipv6 = dice.chance(20 * kPercent);
  add_places(scenario);
  draw_links(scenario, dice);
  draw_rings(scenario, dice);
  draw_faults(scenario, dice);
  // A copied hello claims its queue pair too, so that the switch keeps nobody alive there.
  const bool needs_keep_alive =
      std::ranges::any_of(scenario.rings, [](const RingPlan& ring) { return ring.lateness > 1; });
  if (!needs_keep_alive && scenario.quest == Quest::anything && dice.chance(50 * kPercent)) {
    scenario.rogue_acts = static_cast<std::uint32_t>(dice.between(5, 60));
    // A queue pair number may be used again only when all its packets are gone. Replayed packets
    // never are.
    const bool reuses = std::any_of(scenario.rings.begin(), scenario.rings.end(),
                                    [](const RingPlan& ring) { return ring.reuse != 0; });
    scenario.replays = reuses ? 0 : dice.pick<Ppm>({0, 20 * kPercent, 70 * kPercent});
  }
  scenario.plain_entries = dice.pick<std::uint32_t>({0, 4, 32});
  scenario.stream_frames = dice.chance(40 * kPercent) ? 20 : 0;
  return scenario;
}

namespace {

/// Its switches, with the ranks that they cover.
std::string tree_text(const RingPlan& ring) {
  std::string text = " (";
  for (std::size_t node = 0; node < ring.tree.parts.size(); ++node) {
    if (const RingTree::Part& part = ring.tree.parts[node]; part.exists()) {
      text += fmt::format("{}switch {}: {}-{}{}", text.size() > 2 ? ", " : "", node,
                          part.range().first, part.last(), part.parent ? "" : ", root");
    }
  }
  return text + ")";
}

} // namespace

std::string describe(const Scenario& scenario) {
  std::string text = fmt::format("{} hosts, ACK timeout {:.1f} us, faults end at {:.1f} us;",
                                 scenario.hosts, static_cast<double>(scenario.ack_timeout) / 1000,
                                 static_cast<double>(scenario.faults_end) / 1000);
  if (scenario.workers > 1) {
    text += fmt::format(" {} workers;", scenario.workers);
  }
  if (scenario.has_several_switches()) {
    text +=
        fmt::format(" {} switches, above them {}, hosts on {};", scenario.layout.nodes(),
                    fmt::join(scenario.layout.above, ","), fmt::join(scenario.layout.homes, ","));
  }
  for (const RingPlan& ring : scenario.rings) {
    text += fmt::format(" ring {}: H={} N={} L={}{}{};", ring.spec.id, ring.spec.world(),
                        ring.spec.window, ring.spec.packets_per_message(),
                        ring.tree.has_several_switches() ? tree_text(ring) : "",
                        ring.role == RingRole::victim   ? " (attacked)"
                        : ring.role == RingRole::doomed ? " (doomed)"
                        : ring.is_made                  ? " (made)"
                                                        : "");
  }
  for (const Fault& fault : scenario.faults) {
    text += fmt::format(" {} at {:.1f} us;", name_of(fault.kind),
                        static_cast<double>(fault.begins) / 1000);
  }
  return text;
}

} // namespace weir::fabric
