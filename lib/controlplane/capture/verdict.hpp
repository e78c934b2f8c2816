// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/capture_tap.hpp"
#include "ring/ring_spec.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::capture {

/// How people call what records number.
struct Names {
  std::vector<std::string> ports;
  std::vector<ring::RingSpec> rings;
};

// What the switch did with a packet, as a sentence without a full stop. `bytes` are the frame's.

/// With the packet that came in.
std::string arrival_verdict(const frame::CapturedFrame& captured, const Names& names);

/// With the packet that leaves.
std::string departure_verdict(const frame::CapturedFrame& captured,
                              std::span<const std::uint8_t> bytes, const Names& names);

/// With a frame that it dropped between its ports.
std::string inside_verdict(const frame::CapturedFrame& captured, const Names& names);

} // namespace weir::capture
