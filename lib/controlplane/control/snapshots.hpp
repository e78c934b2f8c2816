// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What Inspector says of the switch, as values.

#include "control/leases.hpp"
#include "control/placement.hpp"
#include "lcore/lcore.hpp"
#include "ring/ring_set.hpp"
#include "stage/snapshot.hpp"
#include "wire/address.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::control {

/// Rings at one moment. The set says what their indices mean.
struct RingsSeen {
  std::shared_ptr<const ring::RingSet> set;
  std::vector<stage::RingSnapshot> rings;
  std::map<std::uint16_t, stage::LineSnapshot> of_regions; // by tenant's number: its regions' lines
};

/// All rings and their lives, for who looks again and again: copied a part in each stop, and at
/// least in one.
struct Look {
  std::uint64_t now_ns = 0; // of the switch's clock, when the first stop began
  std::shared_ptr<const ring::RingSet> set;
  std::vector<stage::RingSnapshot> rings;
  std::vector<TendedRing> tended; // the same rings
};

/// What holds up one ring.
struct StuckRing {
  ring::RingSpec spec;
  stage::StuckSnapshot stuck;
};

/// One lcore's state at one moment.
struct LcoreSnapshot {
  unsigned id = 0;
  std::string roles; // "rx,worker"
  int numa_node = kNoNode;
  std::size_t rings = 0;
  std::uint64_t held = 0; // frames
  frame::FrameCounters frames;
  lcore::RoundCounters rounds;
};

/// A MAC address of the MAC table.
struct Station {
  wire::MacAddress mac;
  std::uint16_t port = 0;
  std::uint64_t age_ms = 0; // since its last frame
  std::uint64_t pins = 0;   // by rings' members
  bool is_tied = false;     // by the configuration
};

} // namespace weir::control
