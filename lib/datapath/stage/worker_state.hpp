// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/classifier.hpp"
#include "conn/incarnations.hpp"
#include "conn/refused_hellos.hpp"
#include "frame/counters.hpp"
#include "l2/bridge.hpp"
#include "op/operators.hpp"
#include "ring/current_rings.hpp"
#include "slot/reduction.hpp"
#include "slot/reduction_queue.hpp"
#include "stage/fair_queue.hpp"
#include "stage/farewells.hpp"
#include "stage/flow_cache.hpp"
#include "stage/forward.hpp"
#include "stage/ring_state.hpp"
#include "stage/schedule.hpp"

#include <cstdint>
#include <memory_resource>
#include <vector>

namespace weir::stage {

/// The way from a worker to the others of the switch.
class WorkerPeers {
 public:
  virtual ~WorkerPeers() = default;

  /// To the queue stage of the worker that has the ring.
  virtual void to_worker_of(std::uint16_t ring, frame::Frame& frame, frame::Instant now) = 0;
};

struct WorkerSettings {
  conn::Classifier::Settings classifier;
  op::CpuLevel level = op::CpuLevel::baseline;
  std::pmr::memory_resource* memory = std::pmr::get_default_resource(); // for slots and results
  slot::ReductionHelpers* helpers = nullptr; // nullptr: the worker makes every reduction itself
  WorkerPeers* peers = nullptr;              // nullptr: there is one worker
  std::uint32_t queue_room = 0;              // frames that may wait for their turn; 0: none waits
};

/// What the stages of one worker share: all state of its rings, and the way out. Each member is
/// made from those before it.
struct WorkerState {
  WorkerState(const ring::CurrentRings& current_rings, std::vector<std::uint16_t> own_rings,
              const WorkerSettings& settings, l2::Bridge& l2_bridge, Forward& next,
              frame::FrameCounters& frame_counters);
  WorkerState(const WorkerState&) = delete; // its members refer to one another
  WorkerState& operator=(const WorkerState&) = delete;
  ~WorkerState() = default;

  const ring::CurrentRings& current;
  l2::Bridge& bridge;
  Forward& forward;
  frame::FrameCounters& counters;
  op::CpuLevel level;
  slot::ReductionHelpers* helpers;
  WorkerPeers* peers;

  l2::PortSet ports_down = 0;       // that have no link
  std::vector<std::uint16_t> owned; // rings
  RingStates rings;
  Schedule schedule;
  conn::Incarnations incarnations;
  conn::Classifier classifier;
  slot::ReductionQueue reductions;
  FairQueue lines;
  FlowCache flow_cache;
  Farewells farewells;
  conn::RefusedHellos refused;
};

} // namespace weir::stage
