// SPDX-License-Identifier: BSD-3-Clause
#include "script.hpp"

#include "scenario.hpp"

#include <array>

namespace weir::fabric {
namespace {

constexpr std::uint16_t kWorld = 3;
constexpr std::uint32_t kWindow = 2;
constexpr std::uint16_t kNobody = 0xffff; // no rank

test::JobSpec spec() {
  test::JobSpec spec;
  spec.ring = kScriptRing;
  spec.world = kWorld;
  spec.window = kWindow;
  spec.mtu = 256;
  spec.max_message_bytes = 600;
  spec.ports = 2;
  spec.pins_ports = true;
  spec.network_id = 99;
  return spec;
}

/// All members derive it from the message number.
Collective collective_of(std::uint32_t message) {
  constexpr std::array collectives{Collective::all_reduce, Collective::all_reduce,
                                   Collective::broadcast, Collective::barrier};
  return collectives[message % collectives.size()];
}

/// Likewise. Some are no rank's.
std::uint16_t root_of(std::uint32_t message) {
  constexpr std::array<std::uint16_t, 4> roots{kNobody, 1, 0, 2};
  return collective_of(message) == Collective::broadcast ? roots[message / 4 % roots.size()] : 0;
}

/// Barriers may have no data; some have. Members agree more often on what is wrong by itself.
std::size_t draw_bytes(Dice& dice, std::uint32_t message) {
  constexpr std::size_t usual = 64;
  if (collective_of(message) == Collective::barrier) {
    return message % 8 == 3 ? usual : 0;
  }
  if (root_of(message) == kNobody) {
    return usual;
  }
  return dice.pick<std::size_t>({64, 64, 216, 540});
}

} // namespace

ring::RingSpec script_ring() {
  return test::RingJob(spec()).ring();
}

Script::Script() : job_(spec()), next_(kWorld, 1) {}

std::vector<Script::Sent> Script::act(Dice& dice, std::uint32_t session) {
  std::vector<Sent> sent;
  if (dice.chance(15 * kPercent)) {
    restart(dice, sent);
  }
  for (std::uint64_t i = dice.between(1, 6); i > 0; --i) {
    continue_message(dice, session, sent);
  }
  return sent;
}

void Script::restart(Dice& dice, std::vector<Sent>& sent) {
  if (dice.chance(70 * kPercent)) {
    job_.restart(job_.spec().epoch + 1);
  }
  for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
    next_[rank] = 1;
    sent.push_back({job_.port_of(rank), job_.hello(rank).bytes});
  }
}

void Script::disagree(Dice& dice, test::InaSpec& ina) const {
  switch (dice.below(4)) {
  case 0:
    ina.operation = static_cast<std::uint8_t>(dice.below(3));
    break;
  case 1:
    ina.data_type = static_cast<std::uint8_t>(dice.below(2));
    break;
  case 2:
    ina.root = static_cast<std::uint16_t>(dice.below(3));
    break;
  default:
    ina.epoch -= 1;
    break;
  }
}

/// Usually the next message, sometimes one as far ahead as the history allows.
void Script::advance(Dice& dice, std::uint16_t rank) {
  next_[rank] += dice.pick<std::uint32_t>({0, 1, 1, 1, kWindow});
}

void Script::continue_message(Dice& dice, std::uint32_t session, std::vector<Sent>& sent) {
  const auto rank = static_cast<std::uint16_t>(dice.below(kWorld));
  const std::size_t bytes = draw_bytes(dice, next_[rank]);
  test::InaSpec ina = job_.ina_of(rank, next_[rank], static_cast<std::uint32_t>(bytes));
  ina.session = session;
  ina.collective = static_cast<std::uint8_t>(collective_of(next_[rank]));
  ina.root = root_of(next_[rank]);
  if (dice.chance(30 * kPercent)) {
    disagree(dice, ina);
  }
  const Ppm leaves_out = dice.pick<Ppm>({0, 0, 30 * kPercent});
  for (const test::Built& frame : job_.message(rank, ina, test::Bytes(bytes, 0x11))) {
    const bool from_elsewhere = dice.chance(5 * kPercent);
    const auto port = static_cast<std::uint16_t>(job_.port_of(rank) ^ (from_elsewhere ? 1 : 0));
    if (!dice.chance(leaves_out)) {
      sent.push_back({port, frame.bytes});
    }
  }
  advance(dice, rank);
}

} // namespace weir::fabric
