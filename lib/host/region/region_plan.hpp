// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"
#include "wire/address.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::host {

inline constexpr std::size_t kMostRegionViews = 16;
inline constexpr std::uint32_t kMostRegionReads = 16;
inline constexpr std::uint16_t kMostRegionMembers = 256;

/// What a READ of a region gives.
struct RegionView {
  Operation operation = Operation::sum;
  DataType type = DataType::f32;
};

enum class Loopback : std::uint8_t { none = 0, own_writes = 1 };

/// All ranks give the same. 0 stands for the switch's defaults (docs/regions.md).
struct RegionOptions {
  std::uint32_t window = 0;           // packets of a member that the switch holds
  std::vector<RegionView> views;      // none: nobody can read
  std::uint32_t entries = 0;          // packets of READs that the switch gathers at a time
  Loopback loopback = Loopback::none; // whether a member gets its own writes
  std::chrono::seconds patience{0};   // with who owes an acknowledgement
  std::chrono::seconds forming{0};    // until all have said hello
  std::uint32_t reads = 4;            // READs that a member may have unanswered
};

/// What the switch is told of a member's queue pair and copy.
struct RegionMember {
  wire::IpAddress ip;
  std::uint32_t queue_pair = 0;
  std::uint32_t first_psn = 0; // of its requests
  std::uint64_t base = 0;
  std::uint32_t key = 0;
  std::uint8_t ack_timeout = 0; // exponent
};

/// The switch's end of a member's connection.
struct RegionEnd {
  std::uint32_t queue_pair = 0;
  std::uint32_t first_psn = 0; // of the switch's requests
  std::array<std::uint8_t, 16> token{};
};

/// What the switch has made: the same for all members, but for their ends.
struct MadeRegion {
  std::uint32_t id = 0; // for people
  wire::IpAddress ip;
  wire::MacAddress mac;
  std::uint64_t base = 0;
  std::uint32_t key = 0;
  std::uint32_t window = 0;
  std::chrono::seconds patience{0};
  std::vector<std::uint32_t> view_keys; // by view
  std::vector<RegionEnd> ends;          // by rank
};

} // namespace weir::host
