// SPDX-License-Identifier: BSD-3-Clause
#include "stage/flow_cache.hpp"

#include <algorithm>
#include <cassert>
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

FlowCache::FlowCache(const ring::CurrentRings& current, std::uint32_t children,
                     const conn::HashKey& hash_key)
    : current_(current), hash_key_(hash_key), table_(kEntriesPerChild * children, hash_key) {}

/// Of the destination and the queue pair there, which name a connection, and of the place in the
/// message. With IPv4 of the source too. Whose headers these are, only a comparison tells. Without
/// the key nobody can make two connections share an entry.
std::uint64_t FlowCache::key_of(const std::uint8_t* frame, std::size_t bth) const {
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

bool FlowCache::fits(const wire::Packet& packet) {
  return packet.parsed == wire::Parsed::message && wire::HeaderTemplate::fits(packet) &&
         packet.encapsulation != wire::Encapsulation::v1_grh;
}

FlowCacheEntry* FlowCache::look_up(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                                   std::size_t bth) {
  FlowCacheEntry* entry = table_.find(key_of(frame.data(), bth));
  if (entry == nullptr || !is_for(*entry, frame, ingress)) {
    return nullptr;
  }
  return last_[static_cast<std::size_t>(entry->headers.packet().opcode.position)] = entry;
}

/// Of the frames that carry messages, as many as there is room for. None twice in a row for one
/// place in a message. Returns how many there are.
std::size_t FlowCache::keys_of(std::span<const std::span<const std::uint8_t>> frames,
                               std::size_t bth, std::span<std::uint64_t> keys) const {
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

void FlowCache::load(std::span<const std::span<const std::uint8_t>> frames, std::uint16_t ingress) {
  const std::size_t bth = bth_offset_[ingress];
  if (bth == 0) {
    return;
  }
  std::array<std::uint64_t, kMostLoaded> keys;
  const std::size_t count = keys_of(frames, bth, keys);
  for (const std::uint64_t key : std::span(keys).first(count)) {
    table_.load(key);
  }
  std::array<const FlowCacheEntry*, kMostLoaded> entries;
  std::size_t found = 0;
  for (const std::uint64_t key : std::span(keys).first(count)) {
    if (const FlowCacheEntry* entry = table_.find(key); entry != nullptr) {
      frame::prefetch_all(entry);
      entries[found++] = entry;
    }
  }
  const std::span known(entries.data(), found);
  const auto current = known.first(
      static_cast<std::size_t>(std::partition(known.begin(), known.end(),
                                              [&](const FlowCacheEntry* entry) {
                                                return entry->rings == current_.number();
                                              }) -
                               known.begin()));
  for (const FlowCacheEntry* entry : current) {
    load_connection(entry->live);
  }
  for (const FlowCacheEntry* entry : current) {
    entry->live.history->load();
  }
}

void FlowCache::learn(frame::Frame& frame, const conn::Verdict& verdict,
                      const conn::LiveConnection& live, slot::SlotTable& slots, std::uint64_t now) {
  const wire::Packet& packet = frame.packet;
  const bool is_usual = live.connection->hellos == 0 &&
                        verdict.record->shape.collective != Collective::hello && fits(packet);
  if (!is_usual || !wire::verify_icrc(frame)) {
    return;
  }
  FlowCacheEntry* entry = place_for(key_of(frame.data, packet.bth_offset));
  if (entry == nullptr) {
    return;
  }
  entry->headers.learn(frame.bytes());
  entry->rings = current_.number();
  entry->heard = now;
  entry->port = frame.ingress;
  entry->mtu = current_->rings()[verdict.ring].spec().mtu;
  entry->pace.learns();
  entry->has_icrc = wire::HeaderIcrc::fits(packet);
  if (entry->has_icrc) {
    entry->icrc.learn(frame);
  }
  entry->live = live;
  entry->slots = &slots;
  entry->identity = live.connection->identity();
  if (packet.opcode.starts_message()) {
    entry->ina = wire::view_as<wire::InaHeader>(frame.payload());
    entry->packets = verdict.record->packets;
  }
  assert(live.connection->state == conn::ConnectionState::live);
  bth_offset_[frame.ingress] = packet.bth_offset;
  ++learnt_;
}

/// nullptr when it is not worth while, or all places are taken. The entry of a connection that has
/// ended may be learnt anew; whoever gets a place must learn, for its old entry is gone.
FlowCacheEntry* FlowCache::place_for(std::uint64_t key) {
  const auto is_of_the_past = [this](const FlowCacheEntry& entry) {
    return entry.rings != current_.number() || !entry.holds();
  };
  if (FlowCacheEntry* known = table_.find(key); known != nullptr) {
    const bool is_worth_while = is_of_the_past(*known) || known->pace.misses();
    return is_worth_while ? known : nullptr;
  }
  return table_.insert(key, [&](const FlowCacheEntry& entry) {
    return is_of_the_past(entry) ? std::optional(current_.number() - entry.rings) : std::nullopt;
  });
}

} // namespace weir::stage
