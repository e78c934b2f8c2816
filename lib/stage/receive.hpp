// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "frame/instant.hpp"
#include "l2/bridge.hpp"
#include "ring/current_rings.hpp"

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
  const ring::CurrentRings& current_;
  l2::Bridge& bridge_;
  frame::FrameCounters& counters_;
};

} // namespace weir::stage
