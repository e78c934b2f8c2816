// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/cached_path.hpp"
#include "stage/graph.hpp"
#include "stage/queue.hpp" // a stage's header brings those of the stages that it hands on to
#include "stage/region.hpp"
#include "stage/timers.hpp"
#include "stage/worker_state.hpp"

namespace weir::stage {

/// The stages of one worker, made and wired from the table in stage/graph.hpp. A stage's
/// constructor takes the pipeline and keeps references to what it uses: its part of the state, and
/// the stages that it hands on to. It uses the state alone, since later stages are not made yet.
class Pipeline {
 public:
  explicit Pipeline(WorkerState& shared) : state(shared) {}

  Pipeline(const Pipeline&) = delete; // the stages refer to one another
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline() = default;

  WorkerState& state;

#define WEIR_MEMBER(name, Class, ...) Class name{*this};
  WEIR_WORKER_STAGES(WEIR_MEMBER)
#undef WEIR_MEMBER

  Timers timers{*this};
  CachedPath cached_path{*this};
};

} // namespace weir::stage
