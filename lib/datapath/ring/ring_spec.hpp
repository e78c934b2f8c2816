// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::ring {

struct Member {
  wire::IpAddress ip;
  std::optional<std::uint16_t> port; // the only port for this member's packets; absent: any port
};

/// Consecutive ranks of a ring.
struct RankRange {
  std::uint16_t first = 0;
  std::uint16_t count = 1;

  std::uint16_t last() const { return static_cast<std::uint16_t>(first + count - 1u); }

  bool has(std::uint16_t rank) const { return rank >= first && rank <= last(); }
};

/// Whose packets a switch adds up (docs/protocol.md §11): a rank's, or those of a switch below,
/// which answers for several ranks, or for one.
enum class ChildKind : std::uint8_t { rank, switch_below };

/// A child sends on one connection, from its last rank to the rank after that.
struct Child {
  RankRange ranks;
  std::optional<std::uint16_t> port; // the one port its packets may come from; absent: any
  ChildKind kind = ChildKind::rank;
  std::string name; // of a switch below, for people
};

/// The switch above: it receives this switch's partial sums. Its totals arrive on one connection,
/// from the rank before this switch's first one to that first one.
struct Parent {
  std::uint16_t port = 0; // the one port its packets may come from
  std::string name;       // for people
};

/// How the switch keeps a sender alive that waits for a slower rank (docs/protocol.md §10).
enum class KeepAlive : std::uint8_t {
  ack, // duplicate acknowledgements
  rnr, // RNR NAKs, for HCAs whose timer does not start anew on a duplicate acknowledgement
  off,
};

/// A ring (one job's H ranks) as configured.
struct RingSpec {
  std::uint32_t id = 0;
  std::uint32_t window = 0;            // N, messages, 1 .. 1024
  std::uint32_t max_message_bytes = 0; // INA header included, at least 40
  std::uint16_t mtu = 1024;            // path MTU: 256, 512, 1024, 2048 or 4096
  std::uint64_t patience_ms = 600'000; // without news, after which the switch asks nobody
  KeepAlive keep_alive = KeepAlive::ack;
  std::uint64_t lease_ms = 3'600'000; // without a packet of any member, then the ring is reclaimed
  std::vector<Member> members;        // in rank order, 2 .. 256, addresses distinct
  std::vector<Child> children;        // of this switch, in ring order; empty: each rank is one
  std::optional<Parent> parent;       // none: the switch is the root
  std::string tenant;                 // whose ring it is; empty: nobody's
  std::uint32_t nonce = 0;            // of the only run that may begin; 0: of any
  std::uint16_t parallel = 1;         // as read: rings of the job, with the ids from this one on

  std::uint16_t world() const { return static_cast<std::uint16_t>(members.size()); }

  std::uint16_t successor(std::uint16_t rank) const {
    return static_cast<std::uint16_t>((rank + 1u) % world());
  }

  std::uint16_t predecessor(std::uint16_t rank) const {
    return static_cast<std::uint16_t>((rank == 0 ? world() : rank) - 1u);
  }

  /// L of docs/protocol.md §2: packets of the longest message.
  std::uint32_t packets_per_message() const { return (max_message_bytes + mtu - 1) / mtu; }

  /// 2N: the number of messages for which slots and histories have room.
  std::uint32_t depth() const { return 2 * window; }
};

/// Tells a ring that was made while the switch runs from all others, also from a later one with its
/// id. Not 0.
using RingBirth = std::uint64_t;

} // namespace weir::ring
