// SPDX-License-Identifier: BSD-3-Clause
#include "rogue_switch.hpp"

#include "answer_watch.hpp"
#include "job.hpp"
#include "wire/syndrome.hpp"

#include <algorithm>

namespace weir::fabric {
namespace {

constexpr std::size_t kSeenBetween = 64;     // frames
constexpr std::uint32_t kFarPsns = 1u << 22; // PSNs: RC takes one behind for a repeat
constexpr std::uint32_t kMostAsks = 300;     // of one flood
constexpr Time kBetweenAsks = 10'000;        // ns
constexpr std::uint8_t kNak = wire::nak_syndrome(wire::NakCode::sequence_error);
constexpr std::uint8_t kNoBuffer = wire::rnr_syndrome(1); // 10 us

std::uint32_t unused_queue_pair(Dice& dice) {
  return kStrangerQueuePair + static_cast<std::uint32_t>(dice.below(1u << 20));
}

/// The syndrome of an answer.
std::uint8_t& syndrome_of(Forgery& forgery) {
  return forgery.byte(forgery.layout().bth_offset + sizeof(wire::Bth));
}

bool is_hello(const wire::InaHeader& ina) {
  return ina.collective == static_cast<std::uint8_t>(Collective::hello);
}

std::uint8_t draw_syndrome(Dice& dice) {
  const auto code = static_cast<std::uint8_t>(dice.below(32));
  return dice.pick<std::uint8_t>({wire::ack_syndrome(code), wire::ack_syndrome(wire::kAckUnlimited),
                                  kNak, kNak, wire::rnr_syndrome(code),
                                  wire::nak_syndrome(wire::NakCode::remote_access),
                                  static_cast<std::uint8_t>(dice.next())});
}

} // namespace

void RogueSwitch::remember(std::deque<Seen>& memory, const Seen& seen) {
  if (memory.size() == kSeenBetween) {
    memory.pop_front();
  }
  memory.push_back(seen);
}

void RogueSwitch::notice(const Packet& packet, std::uint16_t place) {
  if (!scenario_.rings[packet.origin.ring].tree.has_several_switches()) {
    return;
  }
  const auto bytes = packet.bytes();
  const Seen seen{{bytes.begin(), bytes.end()}, place, packet.origin.ring};
  Memory& memory = is_attacked(seen) ? of_attacked_ : of_sound_;
  remember(AnswerWatch::is_answer(packet) ? memory.answers : memory.sums, seen);
}

void RogueSwitch::act() {
  Dice copy = world_.dice;
  Dice dice(copy.next() ^ 0x61626f76);
  act_on(dice, of_sound_, dice.below(8));
  act_on(dice, of_attacked_, dice.below(5));
  hurry(dice);
}

/// Does nothing where `act` is above all acts, or nothing was seen yet.
void RogueSwitch::act_on(Dice& dice, const Memory& memory, std::uint64_t act) {
  if (act < 2 && !memory.sums.empty()) {
    mislead(dice, memory, dice.one_of(memory.sums));
  } else if (act >= 2 && act < 4 && !memory.answers.empty()) {
    answer(dice, dice.one_of(memory.answers));
  } else if (act == 4 && !memory.answers.empty() && asks_left_ == 0) {
    begin_flood(dice, dice.one_of(memory.answers));
  }
}

bool RogueSwitch::is_attacked(const Seen& seen) const {
  return scenario_.rings[seen.ring].role == RingRole::victim;
}

/// Whether its switch has a part in the ring, and it comes from the parent's port.
bool RogueSwitch::comes_from_above(const Seen& seen) const {
  const std::uint16_t node = scenario_.places[seen.place].node;
  const auto& parent = scenario_.rings[seen.ring].tree.parts[node].parent;
  return parent && scenario_.place_between(node, *parent) == seen.place;
}

bool RogueSwitch::runs_here(const Seen& seen, std::uint32_t nonce) const {
  return fabric_.node(scenario_.places[seen.place].node).nonce_of(seen.ring) == nonce;
}

/// Whether the switch where it came has a part in the ring, and was never made to forget it.
bool RogueSwitch::has_switch(const Seen& seen) const {
  const std::uint16_t node = scenario_.places[seen.place].node;
  return scenario_.rings[seen.ring].tree.parts[node].exists() &&
         scenario_.is_known(seen.ring, world_.now);
}

void RogueSwitch::send(const Seen& seen, Forgery& forgery) {
  forgery.sign();
  coverage_.hit(Happening::rogue_frames);
  coverage_.hit(Happening::forged_by_switches);
  fabric_.send(seen.place, world_.packets.make(forgery.bytes()));
}

/// On a sound ring an ask that is a lie, but harms nobody: for what was acknowledged long ago, and
/// from above for what nobody has sent.
void RogueSwitch::answer(Dice& dice, const Seen& seen) {
  Forgery forgery(seen.bytes);
  if (is_attacked(seen)) {
    const std::uint32_t near = static_cast<std::uint32_t>(dice.below(64)) - 32;
    forgery.set_psn(forgery.layout().psn + dice.pick({0u, near, near, near, kFarPsns}));
    syndrome_of(forgery) = draw_syndrome(dice);
    coverage_.hit(comes_from_above(seen) ? Row::parent_answers : Row::child_answers);
    return send(seen, forgery);
  }
  if (!has_switch(seen)) {
    return;
  }
  const bool is_above = comes_from_above(seen);
  forgery.set_psn(forgery.layout().psn +
                  (is_above && dice.chance(50 * kPercent) ? kFarPsns : 0u - kFarPsns));
  syndrome_of(forgery) = kNak;
  coverage_.add(Row::parent_asks, is_above ? 1 : 0);
  send(seen, forgery);
}

void RogueSwitch::begin_flood(Dice& dice, const Seen& seen) {
  if (!is_attacked(seen) && !has_switch(seen)) {
    return;
  }
  asked_ = seen;
  asks_left_ = static_cast<std::uint32_t>(dice.between(20, kMostAsks));
  coverage_.hit(is_attacked(seen) ? Row::floods_of_attacked : Row::floods_of_sound);
  ask_on();
}

/// NAKs; of an attacked ring sometimes with RNR NAKs between them, which end the pauses of others.
void RogueSwitch::ask_on() {
  if (!asked_ || asks_left_ == 0) {
    return;
  }
  Forgery forgery(asked_->bytes);
  const bool is_rnr = is_attacked(*asked_) && asks_left_ % 8 >= 4 && asks_left_ % 2 == 0;
  const std::uint32_t behind = is_attacked(*asked_) ? 0 : kFarPsns;
  forgery.set_psn(forgery.layout().psn - behind);
  syndrome_of(forgery) = is_rnr ? kNoBuffer : kNak;
  send(*asked_, forgery);
  if (--asks_left_ != 0) {
    world_.events.push({.time = world_.now + kBetweenAsks, .kind = EventKind::rogue_asks});
  }
}

void RogueSwitch::mislead(Dice& dice, const Memory& memory, const Seen& seen) {
  if (is_attacked(seen) && dice.chance(30 * kPercent)) {
    return shuffle(dice, memory);
  }
  Forgery forgery(seen.bytes);
  if (is_attacked(seen) && dice.chance(70 * kPercent)) {
    if (forge_attacked(dice, forgery)) {
      coverage_.hit(comes_from_above(seen) ? Row::parent_sums : Row::child_sums);
      send(seen, forgery);
    }
    return;
  }
  if (!forgery.starts_message() || !has_switch(seen)) {
    return;
  }
  const bool is_forged =
      is_hello(forgery.ina()) ? forge_result(dice, seen, forgery) : forge_unasked(dice, forgery);
  if (is_forged) {
    coverage_.hit(comes_from_above(seen) ? Row::parent_drops : Row::child_drops);
    send(seen, forgery);
  }
}

/// The newest total of an attacked ring, as if it were of a later message.
void RogueSwitch::hurry(Dice& dice) {
  const auto newest =
      std::find_if(of_attacked_.sums.rbegin(), of_attacked_.sums.rend(), [this](const Seen& seen) {
        Forgery forgery(seen.bytes);
        return comes_from_above(seen) && forgery.starts_message() && !is_hello(forgery.ina());
      });
  if (newest == of_attacked_.sums.rend() || dice.chance(50 * kPercent)) {
    return;
  }
  constexpr std::uint32_t longest = 8; // packets of a message
  Forgery forgery(newest->bytes);
  const auto ahead = static_cast<std::uint32_t>(dice.between(1, 3));
  forgery.ina().message_id.set(forgery.ina().message_id.get() + ahead);
  forgery.set_psn(forgery.layout().psn + ahead * longest);
  coverage_.hit(Row::parent_early);
  send(*newest, forgery);
}

/// Several, again and in another order, by the port where each came.
void RogueSwitch::shuffle(Dice& dice, const Memory& memory) {
  for (std::uint64_t count = dice.between(2, 12); count > 0; --count) {
    const Seen& each = dice.one_of(memory.sums);
    Forgery forgery(each.bytes);
    send(each, forgery);
  }
  coverage_.hit(Row::sums_shuffled);
}

/// A message that nobody waits for, another run's, another ring's, or other data.
bool RogueSwitch::forge_attacked(Dice& dice, Forgery& forgery) const {
  const wire::Packet& layout = forgery.layout();
  const auto packets = static_cast<std::uint32_t>(dice.below(12));
  const std::size_t header = forgery.starts_message() ? kInaHeaderBytes : 0;
  if (!forgery.starts_message() || dice.chance(20 * kPercent)) {
    if (layout.payload_bytes > header && dice.chance(60 * kPercent)) {
      const std::size_t at = header + dice.below(layout.payload_bytes - header);
      forgery.byte(layout.payload_offset + at) ^= 0x80;
    } else {
      forgery.set_psn(layout.psn + packets - 4);
    }
    return true;
  }
  wire::InaHeader& ina = forgery.ina();
  switch (dice.below(6)) {
  case 0: // of a later message, whose number fits its PSN or does not
    ina.message_id.set(ina.message_id.get() + static_cast<std::uint32_t>(dice.between(1, 5)));
    forgery.set_psn(layout.psn + packets);
    break;
  case 1:
    ina.session.set(static_cast<std::uint32_t>(dice.next()) | 1);
    break;
  case 2:
    ina.flags = static_cast<std::uint8_t>(dice.below(4));
    break;
  case 3: // ends before its time, or lasts
    ina.message_length.set(static_cast<std::uint32_t>(dice.below(2048)));
    break;
  case 4:
    ina.epoch.set(ina.epoch.get() + 1);
    break;
  default:
    ina.root.set(static_cast<std::uint16_t>(dice.below(4)));
    ina.collective = static_cast<std::uint8_t>(dice.below(5));
    break;
  }
  return true;
}

/// A hello, or its result, of the incarnation that runs: on another queue pair, or with another
/// session.
bool RogueSwitch::forge_result(Dice& dice, const Seen& seen, Forgery& forgery) const {
  wire::InaHeader& ina = forgery.ina();
  const bool is_result = ina.flags == kInaFlagResult;
  if (!runs_here(seen, is_result ? ina.message_id.get() : ina.session.get())) {
    return false;
  }
  if (is_result && dice.chance(50 * kPercent)) {
    ina.session.set(ina.session.get() ^ 1);
  } else {
    forgery.set_queue_pair(unused_queue_pair(dice));
  }
  return true;
}

/// A sum that nobody waits for, or of another ring, on a queue pair that nobody has.
bool RogueSwitch::forge_unasked(Dice& dice, Forgery& forgery) const {
  wire::InaHeader& ina = forgery.ina();
  forgery.set_queue_pair(unused_queue_pair(dice));
  if (dice.chance(50 * kPercent)) {
    ina.message_id.set(ina.message_id.get() + static_cast<std::uint32_t>(dice.between(1, 5)));
    return true;
  }
  ina.ring_id.set(scenario_.rings[dice.below(scenario_.rings.size())].spec.id + 100);
  ina.flags |= kInaFlagPartial; // without it another switch's result may pass
  return true;
}

} // namespace weir::fabric
