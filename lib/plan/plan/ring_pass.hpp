// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/routes.hpp"
#include "plan/schedule_builder.hpp"

#include <span>

namespace weir::plan {

/// One ring all-reduce. `chunks` is a multiple of the number of nodes in `line` and is cut into one
/// piece per node. Piece i ends its reduction at line[i]. Takes the 2(L-1) steps after
/// `steps_before` and flows first_flow … first_flow+L-1.
struct RingPass {
  std::span<const VertexId> line;
  ChunkRange chunks;
  Step steps_before = 0;
  FlowId first_flow = 0;
};

void add_ring_pass(ScheduleBuilder& builder, Router& router, const RingPass& pass);

} // namespace weir::plan
