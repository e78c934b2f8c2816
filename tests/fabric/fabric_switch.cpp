// SPDX-License-Identifier: BSD-3-Clause
#include "fabric_switch.hpp"

#include "frame/frame.hpp"
#include "operators.hpp"
#include "slot/result_packet.hpp"
#include "violation.hpp"
#include "wire/crc32.hpp"
#include "wire/headers.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace weir::fabric {
namespace {

constexpr Time kSlowestHandover = 3'000;       // ns; several packets come in that time
constexpr std::uint32_t kHostFrameBytes = 512; // enough for all rings

/// A CRC of addresses, transport headers and payload, without AckReq and what
/// the ICRC does not cover.
std::uint32_t crc_of_result(const Packet& packet) {
  const wire::Packet& parsed = packet.packet;
  std::vector<std::uint8_t> bytes(packet.data + parsed.bth_offset,
                                  packet.data + parsed.icrc_offset);
  auto& bth = wire::view_as<wire::Bth>(bytes.data());
  bth.ack_request = 0;
  bth.reserved_variant = 0; // a link may have damaged it
  return wire::crc32(wire::crc32(0, {packet.data, 2 * sizeof(wire::MacAddress)}), bytes);
}

/// By port of the switch.
std::vector<LinkTraits> traits_of(const Scenario& scenario, std::uint16_t node,
                                  const std::vector<LinkTraits>& all) {
  std::vector<LinkTraits> own;
  for (const std::uint16_t place : scenario.places_of[node]) {
    own.push_back(all[place]);
  }
  return own;
}

/// What the switch has, also after a restart.
program::LoadedOperators operators_of(const Scenario& scenario, std::uint16_t node) {
  std::vector<std::uint32_t> with_both;
  for (const RingPlan& ring : scenario.rings) {
    if (ring.lacks_one != node) {
      with_both.push_back(ring.spec.id);
    }
  }
  return loaded_operators(with_both);
}

} // namespace

bool is_hosts_answer(const Packet& packet) {
  return packet.origin.kind == Origin::Kind::member && AnswerWatch::is_answer(packet);
}

FabricSwitch::FabricSwitch(const Shared& shared, std::uint16_t node, std::uint64_t seed)
    : Star(shared.world.packets, shared.world.dice,
           traits_of(shared.scenario, node, shared.scenario.to_switch),
           traits_of(shared.scenario, node, shared.scenario.from_switch)),
      world_(shared.world), scenario_(shared.scenario), coverage_(shared.coverage),
      notes_(shared.notes), node_(node), operators_(operators_of(scenario_, node)),
      helpers_(world_, node, seed, coverage_), workers_dice_(seed * 3 + node),
      contributions_(scenario_.rings.size()), displaced_(scenario_.rings.size()) {
  for (std::uint16_t ring = 0; ring < scenario_.rings.size(); ++ring) {
    watches_.emplace_back(scenario_, ring, node_, coverage_);
    incarnations_.emplace_back(scenario_.rings[ring], part(ring), ring, coverage_);
    paces_.emplace_back(part(ring), ring);
  }
  lives_.resize(scenario_.rings.size());
  nonces_.resize(scenario_.rings.size());
  install_switch(scenario_.specs(node_));
}

FabricSwitch::~FabricSwitch() {
  coverage_.add(engine().accounting().frames);
}

void FabricSwitch::install_switch(std::vector<ring::RingSpec> rings) {
  std::vector<std::uint32_t> longest;
  for (const std::uint16_t place : scenario_.places_of[node_]) {
    const bool is_strangers = scenario_.places[place].end == Place::End::stranger;
    longest.push_back(is_strangers ? kMaxFrameBytes : kHostFrameBytes);
  }
  stage::InlineSwitch::Settings settings;
  settings.mac_entries = 256;
  settings.worker.classifier.sessions = conn::SessionSource::random({world_.dice.next(), 0});
  settings.worker.classifier.plain_entries = scenario_.plain_entries;
  settings.worker.classifier.operators = &operators_;
  settings.worker.helpers = helpers_.for_next_switch();
  settings.workers = scenario_.workers;
  settings.handover = stage::InlineSwitch::Handover::when_told;
  for (std::uint16_t ring = 0; ring < nonces_.size(); ++ring) {
    rings[ring].nonce = part(ring).exists() ? nonces_[ring] : 0;
    settings.worker.classifier.spare_children +=
        scenario_.has_several_switches() ? rings[ring].world() + 1u : 0u; // to be added again
  }
  install(std::move(rings), longest, settings);
  if (world_.tracing == Tracing::on) {
    installed().trace().switch_on();
  }
  installed().set_ports_down(ports_down_, frame::Instant{world_.now});
}

void FabricSwitch::notice_ports_down(l2::PortSet ports) {
  ports_down_ = ports;
  installed().set_ports_down(ports, frame::Instant{world_.now});
  std::set<std::uint16_t> cut_off;
  for (std::uint16_t ring = 0; ring < scenario_.rings.size(); ++ring) {
    if ((ports_of_switches(ring) & ports) != 0) {
      cut_off.insert(ring);
    }
  }
  answers_.expect_silence(std::move(cut_off));
  expect_timer();
}

/// To the ring's switches above and below.
l2::PortSet FabricSwitch::ports_of_switches(std::uint16_t ring) const {
  const std::optional<std::uint16_t> up = uplink_of(ring);
  l2::PortSet ports = up ? l2::set_of(*up) : 0;
  for (const RingTree::Child& child : part(ring).children) {
    if (child.node) {
      ports |= l2::set_of(scenario_.places[scenario_.place_between(node_, *child.node)].port);
    }
  }
  return ports;
}

void FabricSwitch::restart_switch() {
  replace_switch(scenario_.specs(node_));
}

void FabricSwitch::forget_ring(std::uint16_t ring) {
  replace_switch(scenario_.specs_without(ring, node_));
}

/// Everything that the old switch held is lost.
void FabricSwitch::replace_switch(std::vector<ring::RingSpec> rings) {
  installed().take_all_over(frame::Instant{world_.now});
  reset_rings();
  check_balance();
  if (in_switch_ != 0) {
    throw Violation("I6", "frames stayed in a switch whose rings were all reset");
  }
  coverage_.add(engine().accounting().frames);
  install_switch(std::move(rings));
  for (std::uint16_t ring = 0; ring < watches_.size(); ++ring) {
    operator_acted(ring);
    incarnations_[ring].expect_any();
  }
}

/// An operator cannot name a ring that was withdrawn.
void FabricSwitch::reset_ring(std::uint16_t ring) {
  if (!engine().has_ring(ring)) {
    return;
  }
  installed().reset_ring(ring, frame::Instant{world_.now});
  operator_acted(ring);
  check_balance();
}

/// As if it were withdrawn and added again: its number stays, for the watches.
void FabricSwitch::make_ring(std::uint16_t ring, std::uint32_t nonce) {
  coverage_.hit(Happening::rings_made);
  reset_ring(ring);
  nonces_[ring] = nonce;
  if (!engine().has_ring(ring) || !part(ring).exists()) {
    return;
  }
  ring::RingSpec spec = scenario_.spec(ring, node_);
  spec.nonce = nonce;
  installed().change_rings({&spec, 1}, frame::Instant{world_.now});
}

void FabricSwitch::withdraw_ring(std::uint16_t ring) {
  if (!engine().has_ring(ring)) {
    return;
  }
  installed().withdraw_ring(ring, frame::Instant{world_.now});
  operator_acted(ring);
  check_balance();
}

void FabricSwitch::drain_ring(std::uint16_t ring) {
  if (!engine().has_ring(ring)) {
    return;
  }
  installed().drain_ring(ring, frame::Instant{world_.now});
  incarnations_[ring].expect_no_other();
  check_balance();
}

void FabricSwitch::add_ring(std::uint16_t ring) {
  ring::RingSpec spec = scenario_.spec(ring, node_);
  spec.nonce = nonces_[ring];
  if (installed().add_ring(spec) != ring) {
    throw Violation("I4", "a ring that is added again has another number");
  }
  contributions_[ring] = 0;
  incarnations_[ring].expect_any();
  operator_acted(ring);
}

void FabricSwitch::operator_acted(std::uint16_t ring) {
  ++lives_[ring];
  watches_[ring].forget_order();
  answers_.forget(ring);
  incarnations_[ring].operator_acted(engine());
}

std::uint32_t FabricSwitch::session_of(std::uint32_t ring_id) const {
  const auto ring = engine().rings().ring_with_id(ring_id);
  return ring ? engine().worker_of(*ring).incarnations().session_of(*ring) : 0;
}

std::uint32_t FabricSwitch::nonce_of(std::uint16_t ring) const {
  if (!engine().has_ring(ring)) {
    return 0;
  }
  const auto& incarnation = engine().worker_of(ring).incarnations().incarnation_of(ring);
  return incarnation ? incarnation->nonce : 0;
}

void FabricSwitch::end_noise() {
  for (std::uint16_t port = 0; port < ports(); ++port) {
    to_switch(port).become_reliable();
    from_switch(port).become_reliable();
  }
}

void FabricSwitch::expect_epoch(std::uint16_t ring, std::uint32_t generation) {
  watches_[ring].begin(generation);
  displaced_[ring].has_happened = false;
}

void FabricSwitch::expect_member(AnswerWatch::Requester requester) {
  const RingPlan& plan = scenario_.rings[requester.ring];
  const RingTree::Part& own = part(requester.ring);
  const auto sender = own.sender_for(requester.rank, plan.spec.world());
  if (!sender) {
    return;
  }
  requester.sender = *sender;
  requester.is_parent = own.is_parent(*sender);
  requester.is_rank = !requester.is_parent && !own.children[*sender].node;
  requester.is_outgoing = own.is_outgoing(*sender);
  watches_[requester.ring].expect(requester.rank, requester.first_psn);
  if (plan.role != RingRole::victim) { // its answers are forged too
    answers_.expect(requester);
  }
}

void FabricSwitch::poll_timers() {
  if (switch_timer_.goes_off(world_.now)) {
    answers_.count_kept_alive(engine());
    installed().poll_timers(frame::Instant{world_.now});
    answers_.count_kept_alive(engine());
    check_what_goes_up();
    check_pace();
    if (world_.tracing == Tracing::on) {
      tell_verdict();
    }
    check_balance();
    expect_timer();
  }
}

/// Only the switch above knows what is late there (docs/protocol.md §11.6).
void FabricSwitch::check_what_goes_up() const {
  for (std::uint16_t ring = 0; ring < scenario_.rings.size(); ++ring) {
    if (!part(ring).parent || !engine().has_ring(ring)) {
      continue;
    }
    const conn::Incarnations& incarnations = engine().worker_of(ring).incarnations();
    const auto last = static_cast<std::uint16_t>(part(ring).children.size() - 1);
    if (incarnations.flow_of({ring, last}).counters.resent_late != 0) {
      throw Violation("§11", fmt::format("ring {}: switch {} sends partial sums again because they "
                                         "are not acknowledged in time",
                                         scenario_.rings[ring].spec.id, node_));
    }
  }
}

void FabricSwitch::check_pace() {
  for (PaceWatch& pace : paces_) {
    pace.look(engine(), world_.now);
  }
}

void FabricSwitch::expect_timer() {
  if (const auto time = switch_timer_.set(installed().next_timer())) {
    world_.events.push(
        {.time = std::max(*time, world_.now), .kind = EventKind::look, .place = node_});
  }
}

network::Content FabricSwitch::content_of(const Packet& packet) const {
  return is_hosts_answer(packet) ? network::Content::answer : network::Content::data;
}

void FabricSwitch::note(network::Mishap mishap, const Packet& packet,
                        const network::StarPlace& place) {
  switch (mishap) {
  case network::Mishap::dead_link:
    return coverage_.hit(Happening::frames_at_dead_links);
  case network::Mishap::duplication:
    return coverage_.hit(Happening::frames_duplicated);
  case network::Mishap::loss:
    if (packet.origin.kind == Origin::Kind::member && !is_hosts_answer(packet)) {
      note_loss(packet, place);
    }
    coverage_.hit(is_hosts_answer(packet) ? Happening::answers_lost : Happening::frames_lost);
    world_.tell("  link {} loses {} bytes", scenario_.places_of[node_][place.port], packet.length);
    break;
  }
}

void FabricSwitch::note_loss(const Packet& packet, const network::StarPlace& place) {
  const std::uint16_t ring = packet.origin.ring;
  ++notes_.lost[ring];
  const std::uint16_t link = scenario_.places_of[node_][place.port];
  if (scenario_.places[link].end != Place::End::peer) {
    return;
  }
  const std::uint32_t number = notes_.sums.number_of(packet);
  const auto& parent = part(ring).parent;
  if (parent && scenario_.place_between(node_, *parent) == link) {
    notes_.lost_sums[{ring, *parent, number}] |= std::uint64_t{1} << node_;
  } else if (number == 0) {
    notes_.lost_hellos.insert(ring);
  }
}

void FabricSwitch::damage(Packet& packet) {
  if (packet.length > sizeof(wire::EthernetHeader)) {
    coverage_.hit(Happening::frames_damaged);
    packet.is_damaged = true;
  }
  Star::damage(packet);
}

void FabricSwitch::arrive(Time time, Packet& packet, const network::StarPlace& place) {
  const std::uint16_t number = scenario_.places_of[node_][place.port];
  const bool is_peer = scenario_.places[number].end == Place::End::peer;
  const bool comes_here = place.end == network::StarPlace::End::at_switch;
  world_.events.push({.time = time,
                      .kind = comes_here || is_peer ? EventKind::at_switch : EventKind::at_port,
                      .place = is_peer && !comes_here ? scenario_.places[number].peer : number,
                      .packet = &packet});
}

void FabricSwitch::accept(Packet& packet) {
  enters(packet);
  std::copy_n(packet.data, packet.length, packet.original.begin());
  packet.arrival = ++accepted_;
  if ((packet.visited >> node_ & 1) != 0) {
    throw Violation("I2", fmt::format("a frame comes to switch {} again", node_));
  }
  packet.visited |= 1u << node_;
  accepting_ = &packet;
  const Origin origin = packet.origin;
  const bool is_watched =
      origin.kind == Origin::Kind::member && !is_hosts_answer(packet) && meets(origin);
  if (is_watched) {
    watches_[origin.ring].before(packet, engine());
    answers_.brings(packet);
  }
  for (IncarnationWatch& watch : incarnations_) {
    watch.before(packet, engine());
  }
  installed().receive(packet, frame::Instant{world_.now});
  note_news();
  for (IncarnationWatch& watch : incarnations_) {
    watch.after(engine());
  }
  if (is_watched) {
    watches_[origin.ring].after(packet, engine());
  }
  take_some_over();
  check_pace();
  if (world_.tracing == Tracing::on) {
    tell_verdict();
  }
  check_balance();
  expect_timer();
}

/// The other workers look at their hand-off rings, or are late.
void FabricSwitch::take_some_over() {
  const std::size_t inboxes = engine().inboxes();
  for (std::uint64_t looks = inboxes == 0 ? 0 : workers_dice_.below(2 * inboxes); looks != 0;
       --looks) {
    take_over(workers_dice_.below(inboxes));
  }
  if (engine().accounting().queued != 0 && !is_handover_due_) {
    is_handover_due_ = true;
    world_.events.push({.time = world_.now + 1 + workers_dice_.below(kSlowestHandover),
                        .kind = EventKind::handover,
                        .place = node_});
  }
}

void FabricSwitch::take_over(std::size_t inbox) {
  const frame::Frame* next = engine().waits_in(inbox);
  if (next == nullptr) {
    return;
  }
  for (IncarnationWatch& watch : incarnations_) {
    watch.before(static_cast<const Packet&>(*next), engine());
  }
  if (installed().take_over(inbox, frame::Instant{world_.now})) {
    coverage_.hit(Happening::frames_handed_over);
  }
  note_news();
  for (IncarnationWatch& watch : incarnations_) {
    watch.after(engine());
  }
}

void FabricSwitch::let_workers_take_over() {
  is_handover_due_ = false;
  take_some_over();
  check_pace();
  if (world_.tracing == Tracing::on) {
    tell_verdict();
  }
  check_balance();
  expect_timer();
}

void FabricSwitch::note_news() {
  for (std::uint16_t ring = 0; ring < contributions_.size(); ++ring) {
    if (!engine().has_ring(ring)) {
      continue;
    }
    const frame::RingCounters& counters = engine().worker_of(ring).counters_of(ring);
    const std::uint64_t now = counters.contributions + counters.partial_sums + counters.totals;
    if (std::exchange(contributions_[ring], now) != now) {
      answers_.has_news(ring, world_.now);
    }
    Displaced& displaced = displaced_[ring];
    const std::uint64_t hellos =
        counters.dropped[static_cast<std::size_t>(DropReason::hello_displaced)];
    displaced.has_happened |= std::exchange(displaced.hellos, hellos) < hellos;
  }
}

void FabricSwitch::let_helper_sum() {
  helpers_.make_one();
  installed().collect(frame::Instant{world_.now});
  if (world_.tracing == Tracing::on) {
    tell_verdict();
  }
  check_balance();
  expect_timer();
}

void FabricSwitch::enters(Packet& packet) {
  world_.packets.move(packet, Packet::Place::on_link, Packet::Place::in_switch);
  ++in_switch_;
}

void FabricSwitch::leaves(Packet& packet) {
  world_.packets.move(packet, Packet::Place::in_switch, Packet::Place::on_link);
  --in_switch_;
}

void FabricSwitch::depart(Packet& packet, l2::PortSet ports) {
  leaves(packet);
  check_departure(packet, ports);
  check_order(packet);
  if (scenario_.has_several_switches()) {
    check_sums(packet, ports);
  }
  std::uint64_t& hash = notes_.hash;
  hash = (hash ^ ports ^ world_.now) * 0x9e3779b97f4a7c15;
  hash ^= hash >> 32 ^ wire::crc32(0, packet.bytes());
}

/// Whose packet a frame of the switch's own is. Where queue pairs are used again, it may
/// be an earlier run's.
std::optional<Origin> FabricSwitch::owner_of(const Packet& packet) const {
  const auto owner = notes_.sums.owner_of(packet);
  if (!owner) {
    return std::nullopt;
  }
  Origin origin = owner->origin;
  const bool is_reused = scenario_.rings[origin.ring].reuse != 0;
  origin.generation = is_reused && nonce_of(origin.ring) != owner->nonce ? 0 : origin.generation;
  return origin;
}

/// For another switch, what this one has made is the member's.
void FabricSwitch::leave(std::uint16_t port, Packet& packet) {
  const bool is_peer = scenario_.places[scenario_.places_of[node_][port]].end == Place::End::peer;
  if (is_peer && packet.origin.kind == Origin::Kind::own) {
    packet.origin = owner_of(packet).value_or(Origin());
  }
  const bool is_sum = packet.departure == frame::Departure::consumed &&
                      packet.origin.kind == Origin::Kind::member && !is_hosts_answer(packet);
  if (is_peer && is_sum && notes_.sums.number_of(packet) != 0) {
    ++notes_.carried[{scenario_.places_of[node_][port], packet.origin.ring}];
  }
  Star::leave(port, packet);
}

void FabricSwitch::make_own(Packet& packet) {
  packet.visited = static_cast<std::uint16_t>(1u << node_);
  enters(packet);
  packet.origin.kind = Origin::Kind::own;
}

void FabricSwitch::give_back(Packet& packet) {
  leaves(packet);
}

void FabricSwitch::check_departure(const Packet& packet, l2::PortSet ports) const {
  if (ports == 0 || ports >> this->ports() != 0) {
    throw Violation("I2", fmt::format("a frame left by the ports {:#x}", ports));
  }
  if (packet.origin.kind == Origin::Kind::own) {
    return;
  }
  if ((ports >> packet.ingress & 1) != 0) {
    throw Violation("I2", fmt::format("a frame left by port {}, its ingress", packet.ingress));
  }
  if (packet.departure == frame::Departure::forwarded) {
    check_unaltered(packet);
  } else {
    check_result(packet, ports);
  }
}

void FabricSwitch::check_unaltered(const Packet& packet) const {
  if (&packet != accepting_ && scenario_.workers == 1) {
    throw Violation("I2", "a frame was forwarded long after it came");
  }
  if (!std::equal(packet.data, packet.data + packet.length, packet.original.begin())) {
    throw Violation("I2", "a frame that was forwarded had been altered");
  }
  check_foreign(packet);
}

/// What is of a ring that the switch has is never passed on, nor is a partial sum of any ring.
void FabricSwitch::check_foreign(const Packet& packet) const {
  frame::Frame frame = packet;
  frame.packet = wire::parse(packet.bytes());
  const wire::InaHeader* ina = wire::find_ina_header(frame);
  if (ina == nullptr || !wire::icrc_is_valid(frame)) {
    return;
  }
  if ((ina->flags & kInaFlagPartial) != 0) {
    throw Violation("§11", fmt::format("switch {} passes a partial sum on", node_));
  }
  const auto ring = engine().rings().ring_with_id(ina->ring_id.get());
  const std::uint16_t rank = ina->rank.get();
  if (!ring || *ring >= scenario_.rings.size()) {
    return;
  }
  const ring::RingSpec& spec = engine().rings().rings()[*ring].spec();
  if (rank < spec.world() && part(*ring).sender_for(rank, spec.world()) &&
      ina->world.get() == spec.world() && ina->version == kInaVersion &&
      frame.source() == spec.members[rank].ip &&
      frame.destination() == spec.members[spec.successor(rank)].ip) {
    throw Violation("§11",
                    fmt::format("switch {} passes on a message of its ring {}", node_, spec.id));
  }
}

/// docs/protocol.md §5: headers unchanged, except for RESULT, a hello's session and nonce, and
/// AckReq; no UDP checksum.
void FabricSwitch::check_result(const Packet& packet, l2::PortSet ports) const {
  frame::Frame original = packet;
  original.data = const_cast<std::uint8_t*>(packet.original.data());
  const std::size_t payload = packet.packet.payload_offset;
  std::vector<std::uint8_t> headers(original.data, original.data + payload);
  if (packet.packet.encapsulation != wire::Encapsulation::v1_grh) {
    std::fill_n(headers.begin() + packet.packet.bth_offset - 2, 2, std::uint8_t{0});
  }
  const std::size_t ack_request_at = packet.packet.bth_offset + offsetof(wire::Bth, ack_request);
  headers[ack_request_at] |= packet.data[ack_request_at] & 0x80; // before a stall (R1)
  const bool same_headers = std::equal(headers.begin(), headers.end(), packet.data);
  const std::size_t pad_at = payload + packet.packet.payload_bytes;
  const bool same_pad = std::equal(packet.data + pad_at, packet.data + packet.packet.icrc_offset,
                                   original.data + pad_at);
  if (!same_headers || !same_pad || !wire::icrc_is_valid(packet)) {
    throw Violation("I2",
                    fmt::format("a result has {}", !same_headers ? "other headers than its packet"
                                                   : !same_pad   ? "other pad than its packet"
                                                                 : "a wrong ICRC"));
  }
  if (slot::ina_bytes(packet.packet) == 0) {
    return;
  }
  const wire::InaHeader expected = header_due(packet, ports);
  if (std::memcmp(&expected, packet.payload(), sizeof expected) != 0) {
    throw Violation("I2", "a result's INA header differs in more than RESULT and session");
  }
}

/// Of a result: a total with the switch's session; or, towards the parent, a partial sum. SumWatch
/// looks at what that one says of the parent's session and of the ring.
/// The port of the switch above, if there is one.
std::optional<std::uint16_t> FabricSwitch::uplink_of(std::uint16_t ring) const {
  const auto parent = part(ring).parent;
  return parent ? std::optional(scenario_.places[scenario_.place_between(node_, *parent)].port)
                : std::nullopt;
}

/// A hello's digest and first rank, and a sum's session, are checked elsewhere.
wire::InaHeader FabricSwitch::partial_header_due(wire::InaHeader header,
                                                 const wire::InaHeader& leaving) {
  header.flags = kInaFlagPartial;
  if (header.collective == static_cast<std::uint8_t>(Collective::hello)) {
    header.message_id = leaving.message_id;
    header.root = leaving.root;
  } else {
    header.session = leaving.session;
  }
  return header;
}

wire::InaHeader FabricSwitch::header_due(const Packet& packet, l2::PortSet ports) const {
  auto header =
      wire::view_as<wire::InaHeader>(packet.original.data() + packet.packet.payload_offset);
  const std::uint32_t ring_id = header.ring_id.get();
  const auto ring = engine().rings().ring_with_id(ring_id);
  const bool is_jobs = ring && *ring < scenario_.rings.size();
  const std::optional<std::uint16_t> up = is_jobs ? uplink_of(*ring) : std::nullopt;
  const auto& leaving = wire::view_as<wire::InaHeader>(packet.payload());
  // A stranger may have made the switch learn that a host is up there, if the ring tells no ports.
  const bool may_be_result = is_jobs && !scenario_.rings[*ring].is_pinned;
  const bool is_result = may_be_result && leaving.flags == kInaFlagResult;
  if (up && ports == l2::set_of(*up) && !is_result) {
    return partial_header_due(header, leaving);
  }
  const bool is_hello = header.collective == static_cast<std::uint8_t>(Collective::hello);
  const bool is_parents = up && packet.ingress == *up && header.flags == kInaFlagResult;
  header.flags = kInaFlagResult;
  if (is_hello && !is_parents) {
    header.message_id.set(header.session.get());
    header.root.set(0);
  }
  if (is_hello || (is_jobs && scenario_.rings[*ring].tree.has_several_switches())) {
    header.session.set(session_of(ring_id));
  }
  return header;
}

/// What leaves on a ring's connection as a result, or once more, or is a member's as it came.
void FabricSwitch::check_sums(const Packet& packet, l2::PortSet ports) {
  const bool is_result = packet.departure == frame::Departure::consumed;
  const auto owner = is_result && !AnswerWatch::is_answer(packet) ? owner_of(packet) : std::nullopt;
  if (owner && engine().has_ring(owner->ring)) {
    notes_.sums.leaves(
        packet, {node_, static_cast<std::uint16_t>(std::countr_zero(ports)), lives_[owner->ring],
                 engine().worker_of(owner->ring).incarnations().session_of(owner->ring),
                 nonce_of(owner->ring)});
  }
}

/// A frame that the switch made: an answer in a receiver's name, or a result as it left before.
void FabricSwitch::check_own(const Packet& packet) {
  if (!wire::icrc_is_valid(packet)) {
    throw Violation("I2", "a frame of the switch's own has a wrong ICRC");
  }
  if (AnswerWatch::is_answer(packet)) {
    coverage_.hit(Happening::own_answers);
    note_news();
    return answers_.made(packet, world_.now, engine());
  }
  if (scenario_.has_several_switches()) { // SumWatch sees more
    if (const auto owner = owner_of(packet)) {
      watches_[owner->ring].leaves(*owner, wire::parse(packet.bytes()).psn);
    }
    return;
  }
  coverage_.hit(Happening::results_sent_again);
  const auto owner = owner_of(packet);
  const bool is_attacked = owner && scenario_.rings[owner->ring].role == RingRole::victim;
  // A stranger's MIDDLE may be of another verb than its message, which is not kept.
  if (!is_attacked && !results_.contains(crc_of_result(packet))) {
    throw Violation("I2", "a result that left again differs from all that left before");
  }
}

/// Whether the connection on which the member sends is one of the ring's here.
bool FabricSwitch::meets(const Origin& member) const {
  const std::uint16_t world = scenario_.rings[member.ring].spec.world();
  return part(member.ring).sender_for(member.rank, world).has_value();
}

void FabricSwitch::check_order(const Packet& packet) {
  if (packet.origin.kind == Origin::Kind::own) {
    return check_own(packet);
  }
  if (packet.departure == frame::Departure::consumed) {
    results_.insert(crc_of_result(packet));
  }
  if (packet.departure == frame::Departure::forwarded && is_hosts_answer(packet)) {
    answers_.passes(packet, engine());
    if (!packet.is_damaged) {
      answers_.has_passed(packet);
    }
  }
  // A damaged packet may be of no pair of neighbours, and then waits for no worker.
  const bool may_overtake = packet.is_damaged && scenario_.workers > 1;
  if (packet.origin.kind == Origin::Kind::stream && !may_overtake) {
    std::uint64_t& last = last_of_stream_[packet.origin.ring];
    if (packet.arrival <= last) {
      throw Violation("I7", "a plain stream's frames left in another order than they came in");
    }
    last = packet.arrival;
  }
  // Damage may have made a packet anybody's, unless the switch found it in order.
  const bool is_members = packet.origin.kind == Origin::Kind::member &&
                          (!packet.is_damaged || packet.departure == frame::Departure::consumed);
  if (is_members && packet.packet.opcode.carries_message() && meets(packet.origin)) {
    if (packet.departure == frame::Departure::consumed) {
      answers_.result_leaves(packet);
    }
    watches_[packet.origin.ring].leaves(packet);
  }
}

void FabricSwitch::check_balance() const {
  const stage::Accounting accounting = engine().accounting();
  if (!accounting.balances()) {
    throw Violation("I6", fmt::format("{} frames received, {} accounted for",
                                      accounting.frames.received, accounting.accounted()));
  }
  if (accounting.held + accounting.queued != in_switch_) {
    throw Violation("I6", fmt::format("{} frames held by slots, {} on their way to a worker, {} in "
                                      "the switch",
                                      accounting.held, accounting.queued, in_switch_));
  }
}

/// What the last frame brought about: its own record and, before it, those of a completed slot.
void FabricSwitch::tell_verdict() {
  const std::vector<frame::TraceRecord> records = installed().trace().snapshot();
  for (const frame::TraceRecord& record : records) {
    std::string what(name_of(record.event));
    if (record.event == frame::TraceEvent::dropped) {
      what += fmt::format(" ({})", weir::name_of(record.drop));
    } else if (record.event != frame::TraceEvent::forwarded) {
      what += fmt::format(" ring {} rank {} message {}.{}",
                          engine().rings().rings()[record.ring].spec().id, record.child,
                          record.message, record.packet);
    }
    world_.tell("  switch {}{}: QP {:#x} PSN {:#x} from port {}",
                scenario_.has_several_switches() ? fmt::format("{} ", node_) : "", what, record.qp,
                record.psn, record.ingress);
  }
  installed().trace().switch_on(); // empty again
}

const recovery::Flow* FabricSwitch::flow_of(std::uint16_t ring, std::uint16_t rank,
                                            std::uint32_t nonce) const {
  const auto sender = part(ring).sender_for(rank, scenario_.rings[ring].spec.world());
  if (!sender || nonce_of(ring) != nonce || !watches_[ring].is_undisturbed()) {
    return nullptr;
  }
  const recovery::Flow& flow = engine().worker_of(ring).incarnations().flow_of({ring, *sender});
  return flow.is_live ? &flow : nullptr;
}

std::string FabricSwitch::waiting_of(std::uint16_t ring) const {
  if (!engine().has_ring(ring)) {
    return " withdrawn";
  }
  std::string text;
  for (const slot::StuckSlot& stuck :
       engine().worker_of(ring).slots_of(ring).longest_waiting(3, world_.now)) {
    text += fmt::format(" message {} packet {} waits {:.1f} us for ranks {};", stuck.message,
                        stuck.packet, static_cast<double>(stuck.waiting_ns) / 1000,
                        fmt::join(stuck.missing, ","));
  }
  return text.empty() ? " no slot waits" : text;
}

} // namespace weir::fabric
