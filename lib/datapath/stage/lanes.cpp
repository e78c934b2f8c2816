// SPDX-License-Identifier: BSD-3-Clause
#include "stage/lanes.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace weir::stage {
namespace {

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// Of a frame with a BTH there: whether its UDP header is behind one of IPv6.
bool is_ipv6(const std::uint8_t* frame, std::size_t bth) {
  constexpr std::size_t headers =
      sizeof(wire::EthernetHeader) + sizeof(wire::Ipv6Header) + sizeof(wire::UdpHeader);
  if (bth < headers) {
    return false;
  }
  const auto& ethernet =
      wire::view_as<wire::EthernetHeader>(frame + bth - headers); // or a tag's end
  return ethernet.type.get() == static_cast<std::uint16_t>(wire::EtherType::ipv6);
}

void load_connection(const conn::LiveConnection& live) {
  frame::prefetch_all(live.connection);
  frame::prefetch_all(live.history);
  frame::prefetch_all(live.flow);
}

} // namespace

Lanes::Lanes(const ring::CurrentRings& current, std::uint32_t children,
             const conn::HashKey& hash_key)
    : current_(current), hash_key_(hash_key), table_(kLanesPerChild * children, hash_key) {}

/// Of the destination and the queue pair there, which name a connection, and of the place in the
/// message. With IPv4 of the source too. Whose headers these are, only a comparison tells. Without
/// the key nobody can make two connections share a lane.
std::uint64_t Lanes::key_of(const std::uint8_t* frame, std::size_t bth) const {
  const std::uint8_t* const udp = frame + bth - sizeof(wire::UdpHeader);
  std::uint64_t addresses = word_at(udp - sizeof(std::uint64_t)); // IPv4's, or a half of IPv6's
  if (is_ipv6(frame, bth)) {
    addresses = wire::folded_product(addresses ^ hash_key_.first,
                                     word_at(udp - 2 * sizeof(std::uint64_t)) ^ hash_key_.second);
  }
  const auto& header = wire::view_as<wire::Bth>(frame + bth);
  const auto position = static_cast<std::uint64_t>(wire::info_of(header.opcode).position);
  const std::uint64_t place = header.destination_qp.get() | position << 24;
  return wire::folded_product(addresses ^ hash_key_.second, place ^ hash_key_.first) >> 1;
}

bool Lanes::fits(const wire::Packet& packet) {
  return packet.parsed == wire::Parsed::message && wire::HeaderTemplate::fits(packet) &&
         packet.encapsulation != wire::Encapsulation::v1_grh;
}

Lane* Lanes::look_up(std::span<const std::uint8_t> frame, std::uint16_t ingress, std::size_t bth) {
  Lane* lane = table_.find(key_of(frame.data(), bth));
  if (lane == nullptr || !is_for(*lane, frame, ingress)) {
    return nullptr;
  }
  return last_[static_cast<std::size_t>(lane->headers.packet().opcode.position)] = lane;
}

/// Of the frames that carry messages, as many as there is room for. None twice in a row for one
/// place in a message. Returns how many there are.
std::size_t Lanes::keys_of(std::span<const std::span<const std::uint8_t>> frames, std::size_t bth,
                           std::span<std::uint64_t> keys) const {
  std::array<std::uint64_t, wire::kPositions> previous{};
  std::size_t count = 0;
  for (const std::span<const std::uint8_t> frame : frames) {
    if (count == keys.size()) {
      break;
    }
    if (frame.size() < bth + sizeof(wire::Bth)) {
      continue;
    }
    const wire::OpcodeInfo& opcode = wire::info_of(frame[bth]);
    std::uint64_t& last = previous[static_cast<std::size_t>(opcode.position)];
    const std::uint64_t key = key_of(frame.data(), bth);
    if (opcode.carries_message() && key != last) {
      keys[count++] = last = key;
    }
  }
  return count;
}

void Lanes::load(std::span<const std::span<const std::uint8_t>> frames, std::uint16_t ingress) {
  const std::size_t bth = bth_offset_[ingress];
  if (bth == 0) {
    return;
  }
  std::array<std::uint64_t, kMostLoaded> keys;
  const std::size_t count = keys_of(frames, bth, keys);
  for (const std::uint64_t key : std::span(keys).first(count)) {
    table_.load(key);
  }
  std::array<const Lane*, kMostLoaded> lanes;
  std::size_t found = 0;
  for (const std::uint64_t key : std::span(keys).first(count)) {
    if (const Lane* lane = table_.find(key); lane != nullptr) {
      frame::prefetch_all(lane);
      lanes[found++] = lane;
    }
  }
  const std::span known(lanes.data(), found);
  const auto current = known.first(static_cast<std::size_t>(
      std::partition(known.begin(), known.end(),
                     [&](const Lane* lane) { return lane->rings == current_.number(); }) -
      known.begin()));
  for (const Lane* lane : current) {
    load_connection(lane->live);
  }
  for (const Lane* lane : current) {
    lane->live.history->load();
  }
}

void Lanes::learn(frame::Frame& frame, const conn::Verdict& verdict,
                  const conn::LiveConnection& live, slot::SlotTable& slots, std::uint64_t now) {
  const wire::Packet& packet = frame.packet;
  const bool is_usual = live.connection->hellos == 0 &&
                        verdict.record->shape.collective != Collective::hello && fits(packet);
  if (!is_usual || !wire::verify_icrc(frame)) {
    return;
  }
  Lane* lane = place_for(key_of(frame.data, packet.bth_offset));
  if (lane == nullptr) {
    return;
  }
  lane->headers.learn(frame.bytes());
  lane->rings = current_.number();
  lane->heard = now;
  lane->port = frame.ingress;
  lane->mtu = current_->rings()[verdict.ring].spec().mtu;
  lane->pace.learns();
  lane->has_icrc = wire::HeaderIcrc::fits(packet);
  if (lane->has_icrc) {
    lane->icrc.learn(frame);
  }
  lane->live = live;
  lane->slots = &slots;
  lane->identity = live.connection->identity();
  if (packet.opcode.starts_message()) {
    lane->ina = wire::view_as<wire::InaHeader>(frame.payload());
    lane->packets = verdict.record->packets;
  }
  bth_offset_[frame.ingress] = packet.bth_offset;
  ++learnt_;
}

/// nullptr when it is not worth while, or all places are taken. The lane of a connection that has
/// ended may be learnt anew; whoever gets a place must learn, for its old lane is gone.
Lane* Lanes::place_for(std::uint64_t key) {
  const auto is_of_the_past = [this](const Lane& lane) {
    return lane.rings != current_.number() || !lane.holds();
  };
  if (Lane* known = table_.find(key); known != nullptr) {
    const bool is_worth_while = is_of_the_past(*known) || known->pace.misses();
    return is_worth_while ? known : nullptr;
  }
  return table_.insert(key, [&](const Lane& lane) {
    return is_of_the_past(lane) ? std::optional(current_.number() - lane.rings) : std::nullopt;
  });
}

} // namespace weir::stage
