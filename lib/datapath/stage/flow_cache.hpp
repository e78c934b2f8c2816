// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/bucket_table.hpp"
#include "conn/incarnations.hpp"
#include "frame/frame.hpp"
#include "l2/port_set.hpp"
#include "ring/current_rings.hpp"
#include "slot/slot_table.hpp"
#include "wire/header_template.hpp"
#include "wire/icrc.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace weir::stage {

/// What the stages found out about a contribution and what holds for the next one too, of the same
/// connection and place in a message.
struct alignas(64) FlowCacheEntry {
  wire::HeaderTemplate headers;
  std::uint64_t rings = 0; // number of the set that it was learnt in; 0: nothing was learnt
  std::uint64_t heard = 0; // milliseconds: when the bridge was told where the sender is
  std::uint16_t port = 0;  // that its packets come in by
  std::uint16_t mtu = 0;   // of the ring
  wire::LearningPace pace;
  bool has_icrc = false;
  wire::HeaderIcrc icrc; // if it has one
  conn::LiveConnection live;
  slot::SlotTable* slots = nullptr;        // of the ring
  std::array<std::uint64_t, 2> identity{}; // of the connection
  wire::InaHeader ina{};                   // of a packet that starts a message
  std::uint32_t packets = 0;               // of its message

  /// Whether the connection is what it was, and no hello waits on it.
  bool holds() const { return live.connection->has_identity(identity); }
};

/// The flow cache of one worker's rings. A packet finds its entry by the bytes of its headers,
/// without parse().
class FlowCache {
 public:
  /// For rings with so many children.
  FlowCache(const ring::CurrentRings& current, std::uint32_t children,
            const conn::HashKey& hash_key);

  /// The entry whose headers the frame has. Its connection may have ended. nullptr for any other
  /// frame.
  FlowCacheEntry* find(std::span<const std::uint8_t> frame, std::uint16_t ingress) {
    const std::size_t bth = bth_offset_[ingress];
    if (bth == 0 || frame.size() < bth + sizeof(wire::Bth)) {
      return nullptr;
    }
    const wire::OpcodeInfo& opcode = wire::info_of(frame[bth]);
    FlowCacheEntry* last = last_[static_cast<std::size_t>(opcode.position)];
    if (last != nullptr && is_for(*last, frame, ingress)) [[likely]] {
      return last; // packets of a connection often follow one another
    }
    return opcode.carries_message() ? look_up(frame, ingress, bth) : nullptr;
  }

  /// Asks for the entries of a burst's frames and for their connections, where these are far away.
  /// Each step asks for all of them before the next step waits for the first.
  void load(std::span<const std::span<const std::uint8_t>> frames, std::uint16_t ingress);

  /// Whether the frame has the entry's headers, and its ring is still in the set.
  bool is_for(const FlowCacheEntry& entry, std::span<const std::uint8_t> frame,
              std::uint16_t ingress) const {
    return entry.headers.matches(frame) && entry.port == ingress &&
           entry.rings == current_.number();
  }

  /// How often an entry was learnt. Once the number has changed, an entry that was found before it
  /// may be another connection's.
  std::uint64_t learnt() const { return learnt_; }

  /// Learns from a contribution of a live ring's connection, unless it is a hello or hellos wait on
  /// the connection. It need not be verified yet. The bridge was told of its sender's station not
  /// long before `now`, in milliseconds.
  void learn(frame::Frame& frame, const conn::Verdict& verdict, const conn::LiveConnection& live,
             slot::SlotTable& slots, std::uint64_t now);

 private:
  static constexpr std::uint32_t kEntriesPerChild = 4; // for the four places in messages
  static constexpr std::size_t kMostLoaded = 16;       // entries of a burst

  std::uint64_t key_of(const std::uint8_t* frame, std::size_t bth) const;
  std::size_t keys_of(std::span<const std::span<const std::uint8_t>> frames, std::size_t bth,
                      std::span<std::uint64_t> keys) const;
  static bool fits(const wire::Packet& packet);
  FlowCacheEntry* look_up(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                          std::size_t bth);
  FlowCacheEntry* place_for(std::uint64_t key);

  const ring::CurrentRings& current_;
  const conn::HashKey hash_key_;
  std::array<std::uint16_t, l2::kMaxPorts> bth_offset_{}; // of what was learnt last; by port
  conn::BucketTable<FlowCacheEntry> table_;
  std::array<FlowCacheEntry*, wire::kPositions> last_{}; // that were found, by place in the message
  std::uint64_t learnt_ = 0;
};

} // namespace weir::stage
