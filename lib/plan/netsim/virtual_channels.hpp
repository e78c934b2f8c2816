// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::netsim {

/// Each link's far end holds arriving packets in FIFOs of its own. The link sends only what fits
/// into one of them. On a torus half of them are for packets that cross their dimension's dateline
/// (Hop::Dateline).
struct VirtualChannels {
  std::uint32_t count = 4;
  std::uint32_t bytes = 318 * 16; // each; at least the largest packet

  enum class Arbitration : std::uint8_t {
    by_arrival, // the one that has waited longest
    by_step,    // the earlier step of the schedule, then by arrival
  };
  Arbitration arbitration = Arbitration::by_arrival;
};

} // namespace weir::netsim
