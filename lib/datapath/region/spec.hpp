// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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
enum class Right : std::uint8_t { nothing, write };

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
  Right right = Right::write;
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
  std::vector<MemberSpec> members;    // 2 .. 256
};

inline constexpr std::size_t kMostMembers = 256;
inline constexpr std::size_t kTokenBytes = 16;
inline constexpr std::uint32_t kMostWindow = 4096;

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
  std::uint64_t base = 0;          // where the region begins, to members
  std::uint32_t multicast_key = 0; // rkey of a write to all
  std::vector<MemberBirth> members;
};

/// The first defect of a region: what was found and what is allowed. Empty when there is none.
std::string find_defect(const RegionSpec& spec);

/// Numbers that nobody can guess, from `random`, which gives 64 such bits each time. Queue pairs
/// for which `is_taken` are not drawn.
RegionBirth draw_birth(const RegionSpec& spec, const std::function<std::uint64_t()>& random,
                       const std::function<bool(std::uint32_t)>& is_taken);

} // namespace weir::region
