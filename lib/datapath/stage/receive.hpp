// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "frame/instant.hpp"
#include "l2/bridge.hpp"
#include "ring/current_rings.hpp"
#include "wire/header_prediction.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace weir::stage {

/// The first stage. It learns the source, parses, and finds whether the frame is between ring
/// neighbours; then its `pair` is not 0. It keeps no state of rings, so any lcore may receive any
/// packet.
class Receive {
 public:
  Receive(const ring::CurrentRings& current, l2::Bridge& bridge, frame::FrameCounters& counters);

  /// `frame` has data, length and ingress set. Dispatch takes it next.
  void accept(frame::Frame& frame, frame::Instant now);

 private:
  /// The number of a packet's addresses in a set of rings.
  struct Pair {
    std::uint64_t rings = 0; // number of the set; 0: none
    std::uint16_t number = 0;
  };

  /// What packets of a port look like, and whose the last ones of each place in a message were.
  struct Expected {
    wire::HeaderPrediction headers;
    std::array<Pair, wire::kPositions> pairs;
  };

  void parse(frame::Frame& frame);
  std::uint16_t pair_of(const wire::ParsedBytes& frame) const;

  const ring::CurrentRings& current_;
  l2::Bridge& bridge_;
  frame::FrameCounters& counters_;
  std::vector<Expected> expected_; // by port
};

} // namespace weir::stage
