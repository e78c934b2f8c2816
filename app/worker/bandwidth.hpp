// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"

#include <cstdint>

namespace weir::app {

/// In GB/s of 10^9 bytes, as nccl-tests define both (its doc/PERFORMANCE.md).
struct Bandwidth {
  double algorithm = 0; // bytes of the call's longer buffer by its time
  double bus = 0;       // what a link carries in the best algorithm without a switch
};

/// Of calls that take `seconds` each.
Bandwidth bandwidth_of(const host::Call& call, std::uint16_t world, double seconds);

} // namespace weir::app
