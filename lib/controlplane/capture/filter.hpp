// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/capture_tap.hpp"
#include "ring/ring_set.hpp"

#include <cstdint>
#include <optional>

namespace weir::capture {

/// What belongs to the ring with this index: what the switch did for it; and RoCE packets from or
/// to its members' addresses that the switch forwarded or dropped, also for another ring.
frame::CaptureFilter of_ring(const ring::Ring& ring, std::uint16_t index);

/// A queue pair between ring neighbours, and what answers it.
struct ConnectionName {
  wire::IpAddress source;
  wire::IpAddress destination;
  std::uint32_t qp = 0; // destination queue pair
  std::optional<std::uint32_t>
      own_qp; // the source's; unknown: answers to any queue pair belong to it
};

frame::CaptureFilter of_connection(const ConnectionName& connection);

} // namespace weir::capture
