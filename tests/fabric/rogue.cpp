// SPDX-License-Identifier: BSD-3-Clause
#include "rogue.hpp"

#include "job.hpp"
#include "support/frame_builder.hpp"
#include "wire/parse.hpp"

#include <algorithm>

namespace weir::fabric {
namespace {

constexpr std::size_t kMemory = 64; // frames
constexpr wire::MacAddress kStrangerMac{{0x02, 0x66, 0, 0, 0, 0x01}};
constexpr std::uint32_t kUnknownRing = 777;
constexpr std::uint32_t kFarAway = 100'000; // messages
constexpr std::uint32_t kStrangersQueuePairs = 40;

/// Uses some of them several times, so that the switch knows them as plain.
std::uint32_t nobodys_queue_pair(Dice& dice) {
  const std::uint64_t numbers = dice.pick<std::uint64_t>({2, 1u << 20});
  return kStrangerQueuePair + static_cast<std::uint32_t>(dice.below(numbers));
}

} // namespace

Rogue::Rogue(World& world, Fabric& fabric, const Scenario& scenario, Coverage& coverage)
    : world_(world), fabric_(fabric), scenario_(scenario), coverage_(coverage),
      switch_(world, fabric, scenario, coverage) {}

void Rogue::notice(const Packet& packet, std::uint16_t place) {
  const bool is_between = scenario_.places[place].end == Place::End::peer;
  if (is_between) {
    switch_.notice(packet, place);
  }
  if (is_hosts_answer(packet)) {
    return;
  }
  const auto bytes = packet.bytes();
  const Seen seen{{bytes.begin(), bytes.end()}, place, packet.origin.ring};
  const auto remember = [&seen](std::deque<Seen>& memory) {
    if (memory.size() == kMemory) {
      memory.pop_front();
    }
    memory.push_back(seen);
  };
  if (is_between) {
    return remember(between_switches_);
  }
  remember(recent_);
  Forgery reading(bytes);
  if (reading.starts_message() && reading.ina().message_id.get() == 0) {
    remember(hellos_);
  }
  if (scenario_.rings[packet.origin.ring].role == RingRole::victim) {
    victim_queue_pairs_.push_back(wire::parse(bytes).destination_qp);
  }
}

void Rogue::act() {
  greet_for_all();
  switch_.act();
  Dice& dice = world_.dice;
  if (!between_switches_.empty() && dice.chance(40 * kPercent)) {
    return act_between_switches();
  }
  if (!recent_.empty() && dice.chance(scenario_.replays)) {
    return replay(dice.one_of(recent_));
  }
  const std::uint64_t act = dice.below(10);
  if (act == 0) {
    run_script();
  } else if (act == 1 || recent_.empty()) {
    be_odd();
  } else if (act == 2 && dice.chance(20 * kPercent)) {
    fill_table(kStrangersQueuePairs);
  } else if (act == 2) {
    be_odd();
  } else {
    forge(dice.one_of(recent_));
  }
}

/// Late copies, as a network makes them; and what a switch at the link's end would send that has
/// forgotten the ring, or that lies.
void Rogue::act_between_switches() {
  Dice& dice = world_.dice;
  const Seen& seen = dice.one_of(between_switches_);
  if (dice.chance(scenario_.replays)) {
    coverage_.hit(Happening::replayed_frames);
    return send(seen.place, seen.bytes);
  }
  Forgery forgery(seen.bytes);
  if (!forgery.starts_message()) {
    return;
  }
  if (scenario_.rings[seen.ring].role == RingRole::victim) {
    return forge_wildly(forgery, seen);
  }
  const bool is_forged = (forgery.ina().flags & kInaFlagPartial) != 0
                             ? forge_partial(forgery.ina(), forgery)
                             : forge_total(forgery.ina(), forgery);
  if (is_forged) {
    coverage_.hit(Happening::forged_by_switches);
    forgery.sign();
    send(seen.place, forgery.bytes());
  }
}

/// By a switch below. The switch above must drop it.
bool Rogue::forge_partial(wire::InaHeader& ina, Forgery& forgery) {
  Dice& dice = world_.dice;
  const bool is_hello = ina.collective == static_cast<std::uint8_t>(Collective::hello);
  switch (dice.below(7)) {
  case 0:
    ina.flags = 0;
    break;
  case 1:
    ina.flags = kInaFlagPartial | kInaFlagResult;
    break;
  case 2: // other ranks
    ina.root.set(static_cast<std::uint16_t>(ina.root.get() + 1u));
    return is_hello;
  case 3: // another ring
    ina.message_id.set(ina.message_id.get() ^ 1);
    return is_hello;
  case 4:
    ina.qp.set(0);
    return is_hello;
  default: // another run, or another session
    ina.session.set(static_cast<std::uint32_t>(dice.next()) | 1);
    if (is_hello) {
      ina.epoch.set(dice.pick({ina.epoch.get(), 0xffffffffu}));
      forgery.set_queue_pair(nobodys_queue_pair(dice));
    }
    break;
  }
  return true;
}

/// By the switch above. The switch below must drop it.
bool Rogue::forge_total(wire::InaHeader& ina, Forgery& forgery) {
  Dice& dice = world_.dice;
  const bool is_hello = ina.collective == static_cast<std::uint8_t>(Collective::hello);
  switch (dice.below(5)) {
  case 0:
    ina.flags = 0;
    break;
  case 1:
    ina.flags |= kInaFlagPartial;
    break;
  case 2:
    ina.session.set(ina.session.get() ^ 1);
    return !is_hello;
  default: // a run for which nobody has said hello
    ina.message_id.set(static_cast<std::uint32_t>(dice.next()) | 1);
    forgery.set_queue_pair(nobodys_queue_pair(dice));
    return is_hello;
  }
  return true;
}

void Rogue::send(std::uint16_t place, std::span<const std::uint8_t> bytes) {
  coverage_.hit(Happening::rogue_frames);
  fabric_.send(place, world_.packets.make(bytes));
}

/// Keeps the station's MAC address at its port, because bridges learn from the last frame.
void Rogue::send_from_elsewhere(Forgery& forgery) {
  forgery.ethernet().source = kStrangerMac;
  send(scenario_.stranger_place(), forgery.bytes());
}

/// Sends several packets again, as a network does that has delayed them for long.
void Rogue::replay(const Seen& seen) {
  coverage_.hit(Happening::replayed_frames);
  if (world_.dice.chance(70 * kPercent)) {
    return send(seen.place, seen.bytes);
  }
  for (const Seen& each : recent_) {
    if (each.ring == seen.ring) {
      send(each.place, each.bytes);
    }
  }
}

void Rogue::forge(const Seen& seen) {
  Forgery forgery(seen.bytes);
  if (forgery.starts_message() && world_.dice.chance(20 * kPercent)) {
    return pose_as_sender(forgery, seen);
  }
  if (scenario_.rings[seen.ring].role == RingRole::victim) {
    return forge_wildly(forgery, seen);
  }
  if (forgery.starts_message()) {
    forge_first(forgery, seen);
  } else {
    forge_other(forgery, seen);
  }
}

void Rogue::forge_first(Forgery& forgery, const Seen& seen) {
  const bool is_hello = forgery.ina().message_id.get() == 0;
  if (is_hello && world_.dice.chance(50 * kPercent)) {
    forge_hello(forgery, seen);
  } else if (is_hello || world_.dice.chance(40 * kPercent)) {
    forge_foreign(forgery, seen);
  } else {
    forge_refused(forgery, seen);
  }
}

/// A hello that belongs to a ring: rejected, or one more that waits for others that never come.
void Rogue::forge_hello(Forgery& forgery, const Seen& seen) {
  Dice& dice = world_.dice;
  wire::InaHeader& ina = forgery.ina();
  switch (dice.below(6)) {
  case 0:
    ina.session.set(0);
    break;
  case 1:
    ina.ack_timeout = 32;
    break;
  case 2:
    ina.message_id.set(1);
    break;
  case 3:
    ina.epoch.set(ina.epoch.get() - 1);
    ina.session.set(static_cast<std::uint32_t>(dice.next()) | 1);
    forgery.set_queue_pair(nobodys_queue_pair(dice));
    break;
  default:
    ina.epoch.set(dice.pick({ina.epoch.get(), 0xffffffffu}));
    ina.session.set(static_cast<std::uint32_t>(dice.next()) | 1);
    forgery.set_queue_pair(nobodys_queue_pair(dice));
    break;
  }
  forgery.sign();
  send(seen.place, forgery.bytes());
}

/// A message header that belongs to a ring, with a field for which the switch must drop it first of
/// all.
void Rogue::forge_refused(Forgery& forgery, const Seen& seen) {
  if (!scenario_.is_known(seen.ring, world_.now)) {
    return; // for a switch that does not know the ring these are another switch's results
  }
  Dice& dice = world_.dice;
  wire::InaHeader& ina = forgery.ina();
  switch (dice.below(18)) {
  case 0:
    ina.flags |= kInaFlagResult;
    break;
  case 1:
    ina.flags |= 0x10;
    break;
  case 2:
    ina.flags |= kInaFlagPartial;
    break;
  case 3:
    ina.collective = 4;
    break;
  case 4:
    ina.operation = 200;
    break;
  case 5:
    ina.collective = static_cast<std::uint8_t>(Collective::hello); // with a message number
    break;
  case 6:
    ina.session.set(ina.session.get() ^ 1);
    break;
  case 7:
    ina.message_length.set(scenario_.rings[seen.ring].spec.max_message_bytes);
    break;
  case 8:
    ina.message_length.set(ina.message_length.get() - 1);
    break;
  case 9:
    ina.message_length.set(ina.message_length.get() / 8 * 4);
    break;
  case 10:
    ina.epoch.set(ina.epoch.get() == 0 ? 0 : ina.epoch.get() - 1);
    forgery.set_queue_pair(nobodys_queue_pair(dice));
    break;
  case 11:
    ina.message_id.set(ina.message_id.get() + kFarAway);
    break;
  // So old that receivers take it for a repeat, if the switch takes it for stale and forwards it.
  case 12:
    forgery.set_psn(forgery.layout().psn - (1u << 22));
    break;
  case 13: // as if it were the next message on the rank's queue pair
    forgery.set_queue_pair(nobodys_queue_pair(dice));
    forgery.set_psn(forgery.layout().psn + 1);
    ina.message_id.set(ina.message_id.get() + 1);
    forgery.byte(forgery.layout().payload_offset + kInaHeaderBytes) ^= 0x80;
    break;
  case 14:
    forgery.bth().flags |= 0x01; // transport version
    break;
  case 15: // pad; without a whole header it would be a plain SEND, which may pass
    if (forgery.layout().payload_bytes == kInaHeaderBytes) {
      return;
    }
    forgery.bth().flags ^= 0x10;
    break;
  case 16:
    ina.collective = static_cast<std::uint8_t>(Collective::barrier); // with data
    break;
  default: // without a valid ICRC
    ina.message_id.set(ina.message_id.get() + 1);
    return send(seen.place, forgery.bytes());
  }
  forgery.sign();
  send(seen.place, forgery.bytes());
}

bool Rogue::is_pinned(const Seen& seen) const {
  return scenario_.rings[seen.ring].is_pinned;
}

/// By another port, on the sender's own queue pair: what would make it another's if it came by the
/// sender's port. Receivers take it for a repeat.
void Rogue::pose_as_sender(Forgery& forgery, const Seen& seen) {
  Dice& dice = world_.dice;
  wire::InaHeader& ina = forgery.ina();
  coverage_.hit(Happening::forged_kinds);
  forgery.set_psn(forgery.layout().psn - (1u << 22));
  switch (dice.below(3)) {
  case 0: // plain
    ina.magic.set(0);
    break;
  case 1: // another switch's ring
    ina.ring_id.set(kUnknownRing);
    break;
  default:
    ina.ring_id.set(kUnknownRing);
    ina.flags |= kInaFlagResult;
    break;
  }
  forgery.ethernet().source = kStrangerMac;
  forgery.sign();
  const auto places_on = static_cast<std::uint16_t>(dice.between(1, scenario_.hosts));
  send(static_cast<std::uint16_t>((seen.place + places_on) % (scenario_.hosts + 1)),
       forgery.bytes());
}

/// A restarted switch knows no queue pair.
void Rogue::use_restart() {
  for (const Seen& seen : recent_) {
    Forgery forgery(seen.bytes);
    if (forgery.starts_message()) {
      pose_as_sender(forgery, seen);
    }
  }
}

/// The same sender's header in another of its rings, in which the destination is not its successor.
bool Rogue::claim_other_ring(Forgery& forgery, const Seen& seen) const {
  for (const RingPlan& other : scenario_.rings) {
    const ring::RingSpec& spec = other.spec;
    for (std::uint16_t rank = 0; rank < spec.world(); ++rank) {
      const bool is_member = spec.members[rank].ip == forgery.source();
      const bool belongs = spec.members[spec.successor(rank)].ip == forgery.destination();
      if (is_member && !belongs && spec.id != scenario_.rings[seen.ring].spec.id) {
        forgery.ina().ring_id.set(spec.id);
        forgery.ina().rank.set(rank);
        forgery.ina().world.set(spec.world());
        return true;
      }
    }
  }
  return false;
}

/// A header that belongs to no ring, on a queue pair that no host has.
void Rogue::forge_foreign(Forgery& forgery, const Seen& seen) {
  Dice& dice = world_.dice;
  wire::InaHeader& ina = forgery.ina();
  forgery.set_queue_pair(nobodys_queue_pair(dice));
  switch (dice.below(7)) {
  case 0:
    ina.version = 1;
    break;
  case 1:
    ina.ring_id.set(kUnknownRing);
    break;
  case 2:
    ina.world.set(static_cast<std::uint16_t>(ina.world.get() + 1));
    break;
  case 3:
    ina.rank.set(static_cast<std::uint16_t>(ina.world.get() + 3));
    break;
  case 4:
    ina.rank.set(static_cast<std::uint16_t>((ina.rank.get() + 1) % ina.world.get()));
    break;
  case 5:
    if (!claim_other_ring(forgery, seen)) {
      return;
    }
    break;
  default:
    if (!is_pinned(seen)) {
      return;
    }
    forgery.sign();
    return send_from_elsewhere(forgery);
  }
  forgery.sign();
  send(seen.place, forgery.bytes());
}

/// A MIDDLE or LAST.
void Rogue::forge_other(Forgery& forgery, const Seen& seen) {
  Dice& dice = world_.dice;
  switch (dice.below(6)) {
  case 0:
    if (is_pinned(seen)) {
      forgery.byte(forgery.layout().payload_offset) ^= 0x80;
      forgery.sign();
      send_from_elsewhere(forgery);
    }
    return;
  case 1:
    forgery.set_queue_pair(nobodys_queue_pair(dice));
    break;
  case 2:
    forgery.bth().flags |= 0x02; // transport version
    break;
  case 3:
    if (scenario_.is_ipv6) {
      return;
    }
    forgery.make_fragment();
    break;
  case 4: // a MIDDLE in place of a LAST, or the reverse: both wrong at this place
    forgery.bth().opcode = forgery.layout().opcode.ends_message()
                               ? static_cast<std::uint8_t>(wire::Opcode::write_middle)
                               : static_cast<std::uint8_t>(wire::Opcode::write_last);
    break;
  default: // without a valid ICRC
    forgery.byte(forgery.layout().payload_offset) ^= 0x80;
    return send(seen.place, forgery.bytes());
  }
  forgery.sign();
  send(seen.place, forgery.bytes());
}

/// Any change, as long as the packet stays the victim's.
void Rogue::forge_wildly(Forgery& forgery, const Seen& seen) {
  Dice& dice = world_.dice;
  for (std::uint64_t i = dice.between(1, 3); i > 0; --i) {
    switch (dice.below(6)) {
    case 0:
      forgery.set_psn(forgery.layout().psn + static_cast<std::uint32_t>(dice.below(16)) - 8);
      break;
    case 1:
      if (!victim_queue_pairs_.empty()) { // until then only switches have sent for the ring
        forgery.set_queue_pair(dice.one_of(victim_queue_pairs_));
      }
      break;
    case 2:
      forgery.byte(forgery.layout().payload_offset + dice.below(forgery.layout().payload_bytes)) =
          static_cast<std::uint8_t>(dice.next());
      break;
    default:
      if (forgery.starts_message()) {
        wire::InaHeader& ina = forgery.ina();
        reinterpret_cast<std::uint8_t*>(&ina)[dice.below(sizeof ina)] +=
            dice.pick<std::uint8_t>({1, 2, 255, 128});
      }
      break;
    }
  }
  if (forgery.starts_message()) {
    forgery.ina().ring_id.set(scenario_.rings[seen.ring].spec.id);
  }
  forgery.sign();
  if (dice.chance(80 * kPercent)) {
    send(seen.place, forgery.bytes());
  } else {
    send_from_elsewhere(forgery);
  }
}

test::FrameSpec Rogue::between_neighbours() {
  const RingPlan& ring = world_.dice.one_of(scenario_.rings);
  const auto rank = static_cast<std::uint16_t>(world_.dice.below(ring.hosts.size()));
  const std::uint16_t successor = ring.spec.successor(rank);
  test::FrameSpec frame;
  frame.network = scenario_.is_ipv6 ? test::Network::ipv6 : test::Network::ipv4;
  frame.source_mac = kStrangerMac;
  frame.destination_mac = mac_of_host(ring.hosts[successor]);
  frame.source = ring.spec.members[rank].ip;
  frame.destination = ring.spec.members[successor].ip;
  frame.qp = nobodys_queue_pair(world_.dice);
  frame.payload = test::Bytes(32, 0x33);
  return frame;
}

/// Frames that belong to no job.
void Rogue::be_odd() {
  Dice& dice = world_.dice;
  test::FrameSpec frame = between_neighbours();
  std::uint16_t port = scenario_.stranger_place();
  std::size_t cut = kMaxFrameBytes;
  switch (dice.below(10)) {
  case 0:
    cut = dice.below(14);
    break;
  case 9: // uses another host's MAC address
    frame.source_mac = mac_of_host(static_cast<std::uint16_t>(dice.below(scenario_.hosts)));
    frame.udp_destination = 5000;
    break;
  case 1:
    frame.destination_mac = {{0x01, 0x80, 0xc2, 0, 0, 0x0e}};
    break;
  case 2:
    frame.payload.resize(600);
    break;
  case 3:
    port = static_cast<std::uint16_t>(dice.below(scenario_.hosts));
    frame.destination_mac = mac_of_host(port);
    break;
  case 4:
    frame.opcode = 0x07; // a MIDDLE without a FIRST
    break;
  case 5:
    frame.network = test::Network::ipv6;
    frame.source = ip_of_host(0, true);
    frame.destination = ip_of_host(1, true);
    break;
  case 6: // has an effect where the hosts' addresses are IPv6
    frame.network = test::Network::ipv6;
    frame.next = 60;
    frame.ip_extensions = {17, 0, 1, 4, 0, 0, 0, 0};
    break;
  case 7:
    frame.destination_mac = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    frame.opcode = 0x64; // UD
    break;
  default:
    frame.opcode = 0x0c; // READ
    break;
  }
  const test::Bytes bytes = test::build(frame).bytes;
  send(port, std::span(bytes).first(std::min(cut, bytes.size())));
}

/// Makes the switch forget the queue pairs that it may forget.
void Rogue::fill_table(std::uint32_t queue_pairs) {
  const test::Bytes plain = test::build(between_neighbours()).bytes;
  const auto first = kStrangerQueuePair + static_cast<std::uint32_t>(world_.dice.below(1u << 20));
  for (std::uint32_t i = 0; i < queue_pairs; ++i) {
    Forgery forgery(plain);
    forgery.set_queue_pair(first + i);
    forgery.sign();
    send(scenario_.stranger_place(), forgery.bytes());
  }
}

/// The table has places for the plain ones and for twice each ring's members.
void Rogue::bury_connections() {
  std::uint32_t places = scenario_.plain_entries;
  for (const ring::RingSpec& ring : scenario_.specs(0)) {
    places += 2u * ring.world();
  }
  fill_table(2 * places); // some get lost
}

void Rogue::repeat_hellos(std::uint16_t ring) {
  for (const Seen& hello : hellos_) {
    if (hello.ring == ring) {
      coverage_.hit(Happening::hellos_after_reset);
      send(hello.place, hello.bytes);
    }
  }
}

/// For each rank of a ring that was made: a hello of one false run, by any port, and of one rank
/// four more. By dice of its own, as the rings are drawn.
void Rogue::greet_for_all() {
  Dice copy = world_.dice;
  Dice dice(copy.next() ^ 0x68656c6f);
  if (!dice.chance(20 * kPercent)) {
    return;
  }
  const auto nonce = static_cast<std::uint32_t>(dice.next()) | 1;
  const auto crowded = static_cast<std::uint16_t>(dice.below(scenario_.hosts));
  for (const Seen& hello : hellos_) {
    if (!scenario_.rings[hello.ring].is_made) {
      continue;
    }
    Forgery forgery(hello.bytes);
    forgery.ina().epoch.set(0xffffffff);
    const std::uint32_t times = forgery.ina().rank.get() == crowded ? 5 : 1;
    for (std::uint32_t time = 0; time < times; ++time) {
      coverage_.hit(Happening::false_greetings);
      forgery.ina().session.set(nonce + 2 * time);
      forgery.set_queue_pair(kStrangerQueuePair + static_cast<std::uint32_t>(dice.below(1u << 20)));
      forgery.sign();
      if (is_pinned(hello) || dice.chance(50 * kPercent)) {
        send(hello.place, forgery.bytes());
      } else {
        send_from_elsewhere(forgery);
      }
    }
  }
}

void Rogue::run_script() {
  for (const Script::Sent& sent :
       script_.act(world_.dice, fabric_.node(0).session_of(kScriptRing))) {
    send(scenario_.places_of[0][sent.port], sent.bytes);
  }
}

} // namespace weir::fabric
