// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/packet.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::frame {

/// How a frame that is not dropped leaves the switch. It is counted under this name.
enum class Departure : std::uint8_t {
  forwarded, // as it came
  consumed,  // as a result, or answered from the cache
  copy,      // one more copy of a flooded frame; the first copy counts as the frame
};

/// Which frames go first when a link is full (docs/protocol.md, I12). All packets of a connection
/// whose order matters have one class.
enum class TrafficClass : std::uint8_t {
  ring,  // results, and ring neighbours' answers to each other: ACKs, NAKs, CNPs
  other, // everything else
};

inline constexpr std::size_t kTrafficClasses = 2;

/// The ingress of a frame that the switch made itself.
inline constexpr std::uint16_t kNoPort = UINT16_MAX;

/// One frame. Its owner allocates it; the stages pass a pointer on. Each frame ends in
/// exactly one `transmit` (of its own or with others) or `release`.
struct Frame : wire::ParsedBytes {
  std::uint16_t ingress = kNoPort; // port index; written by receive alone
  /// Written by receive: ring::RingSet's number of <source, destination>, 0: none.
  std::uint16_t pair = 0;
  Departure departure = Departure::forwarded; // written by the stage that sends it
  TrafficClass traffic = TrafficClass::other; // written by receive, or by the stage that sends it
};

} // namespace weir::frame
