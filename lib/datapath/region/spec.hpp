// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"
#include "wire/address.hpp"
#include "wire/psn.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weir::region {

/// What a member may do with the region.
enum class Right : std::uint8_t { nothing = 0, write = 1, read = 2, all = write | read };

constexpr bool allows(Right has, Right wanted) {
  return (static_cast<unsigned>(has) & static_cast<unsigned>(wanted)) != 0;
}

/// Whether a member is a target of its own writes.
enum class Loopback : std::uint8_t { off, on };

/// A member's queue pair and its copy of the memory.
struct MemberSpec {
  wire::IpAddress ip;
  std::optional<std::uint16_t> port; // the only port for its packets; absent: that of its hello
  std::uint32_t queue_pair = 0;      // 2 .. 2^24-1
  std::uint32_t first_psn = 0;       // of its requests
  std::uint64_t base = 0;            // where its copy begins
  std::uint32_t key = 0;             // rkey of its copy
  std::uint8_t ack_timeout = 14;     // 4.096 us x 2^x (IBTA §9.9); 1 .. 31
  Right right = Right::all;
  // READs that it may have unanswered, and that it answers again: its max_rd_atomic and
  // max_dest_rd_atomic; 1 .. 16.
  std::uint8_t reads = 1;
};

/// What a READ of the region gives: a fold of all members' bytes (docs/protocol.md §2).
struct RegionView {
  Operation operation{};
  DataType type{};

  bool operator==(const RegionView&) const = default;
};

/// A range of memory that each member has a copy of.
struct RegionSpec {
  std::uint32_t id = 0;
  std::uint64_t bytes = 0;   // of each copy, at least 16
  std::uint16_t mtu = 1024;  // path MTU: 256, 512, 1024, 2048 or 4096
  std::uint32_t window = 64; // packets held of a member, 2 .. 4096
  Loopback loopback = Loopback::off;
  std::uint64_t patience_ms = 10'000; // without a sign of life of who owes an answer
  std::uint64_t forming_ms = 60'000;  // in which all must say hello
  std::vector<RegionView> views;      // at most 16, each once; none: nobody can read
  std::uint32_t entries = 32;         // packets of READs that are gathered at a time, 1 .. 4096
  std::vector<MemberSpec> members;    // 2 .. 256
};

inline constexpr std::size_t kMostMembers = 256;
inline constexpr std::size_t kTokenBytes = 16;
inline constexpr std::uint32_t kMostWindow = 4096;
inline constexpr std::uint32_t kMostReads = 16;
inline constexpr std::size_t kMostViews = 16;
inline constexpr std::uint32_t kMostEntries = 4096;
/// Entries times members: a READ that is repeated may have them all given anew.
inline constexpr std::uint64_t kMostPlaces = 1 << 16;
/// Of one READ, in packets. So all PSNs between the oldest of kMostReads READs and the newest
/// request have an order.
inline constexpr std::uint32_t kMostReadPackets = (1 << 22) / kMostReads;
/// Offset and length of a READ are multiples of it: no element lies in two packets.
inline constexpr std::uint64_t kReadUnit = 8;

/// What a member says in its hello. Only who was told it can say it.
using Token = std::array<std::uint8_t, kTokenBytes>;

/// The switch's end of a member's connection.
struct MemberBirth {
  std::uint32_t queue_pair = 0;
  std::uint32_t first_psn = 0; // of the switch's requests
  Token token{};
};

/// What the switch draws for a region, and tells its members.
struct RegionBirth {
  std::uint64_t base = 0;               // where the region begins, to members
  std::uint32_t multicast_key = 0;      // rkey of a write to all
  std::vector<std::uint32_t> view_keys; // rkey of each view: a READ has no room for its name
  std::vector<MemberBirth> members;
};

/// Frames that the region can hold: of its members' writes, and of their answers to its READs.
std::uint64_t most_frames(const RegionSpec& spec);

/// Packets of READs that it gathers at a time.
inline std::uint32_t entries_of(const RegionSpec& spec) {
  return spec.views.empty() ? 0 : spec.entries;
}

/// The first defect of a region: what was found and what is allowed. Empty when there is none.
std::string find_defect(const RegionSpec& spec);

/// Numbers that nobody can guess, from `random`, which gives 64 such bits each time. Queue pairs
/// for which `is_taken` are not drawn.
RegionBirth draw_birth(const RegionSpec& spec, const std::function<std::uint64_t()>& random,
                       const std::function<bool(std::uint32_t)>& is_taken);

} // namespace weir::region
