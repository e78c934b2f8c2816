// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/packet.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::frame {

/// How a frame that is not dropped leaves the switch, and how it is counted once it has left.
enum class Departure : std::uint8_t {
  forwarded, // as it came
  consumed,  // as a result: its payload went into a sum, or was answered from the cache
  copy,      // of a flooded frame, by a further port; another port's departure stands for the frame
};

/// Which frames go before which where a link is full (docs/protocol.md, I12). Packets of one
/// connection that must keep their order are of one class.
enum class TrafficClass : std::uint8_t {
  ring,  // results, and what ring neighbours answer one another: ACKs, NAKs, CNPs
  other, // everything else
};

inline constexpr std::size_t kTrafficClasses = 2;

/// One received frame on its way through the stages. Who allocated it decides where it lives; the
/// stages hand it on by pointer and each frame ends in exactly one egress call.
struct Frame : wire::ParsedBytes {
  std::uint16_t ingress = 0; // port index; written by receive alone
  /// Written by receive: ring::RingSet's number of <source, destination>, 0: none.
  std::uint16_t pair = 0;
  Departure departure = Departure::forwarded; // written by the stage that sends it
  TrafficClass traffic = TrafficClass::other; // written by receive, or by the stage that sends it
};

} // namespace weir::frame
