// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/big_endian.hpp"
#include "wire/headers.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace weir::wire {

/// What a switch sends by each port that bridges, to learn whether it comes back by another one
/// (docs/operating.md, "Loops"). It lies behind the EtherType, perhaps behind tags that other
/// switches have put on.
struct LoopProbe {
  be32 magic;   // kLoopProbeMagic
  be16 version; // kLoopProbeVersion
  be16 port;    // by which it left
  be64 sender;  // a random number for the life of the switch
  be64 token;   // another random number for each probe: nobody can forge one
};

static_assert(sizeof(LoopProbe) == 24);

inline constexpr std::uint32_t kLoopProbeMagic = 0x5745494c; // "WEIL"
inline constexpr std::uint16_t kLoopProbeVersion = 1;
/// A group address that no standard has reserved: bridges forward it, and hosts do not listen to
/// it.
inline constexpr MacAddress kLoopProbeGroup{{0x03, 0x57, 0x45, 0x49, 0x52, 0x01}};
inline constexpr std::size_t kLoopProbeBytes = 60; // the shortest frame, without its FCS

using LoopProbeFrame = std::array<std::uint8_t, kLoopProbeBytes>;

LoopProbe loop_probe(std::uint64_t sender, std::uint16_t port, std::uint64_t token);

/// A frame with this probe. Its source is a local address that follows from the sender, and no
/// station's.
LoopProbeFrame frame_of(const LoopProbe& probe);

/// nullptr for any other frame with this destination.
const LoopProbe* read_loop_probe(std::span<const std::uint8_t> frame);

/// nullptr for any other frame, also one with the same EtherType. Most frames end at the first
/// byte.
inline const LoopProbe* find_loop_probe(std::span<const std::uint8_t> frame) {
  const bool may_be_one = frame.size() >= kLoopProbeBytes && frame[0] == kLoopProbeGroup.bytes[0] &&
                          view_as<EthernetHeader>(frame.data()).destination == kLoopProbeGroup;
  return may_be_one ? read_loop_probe(frame) : nullptr;
}

} // namespace weir::wire
