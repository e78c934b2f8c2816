// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Plans as text: YAML for programs (docs/planner.md, "What comes out"), tables for people.

#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/topology.hpp"

#include <ostream>

namespace weir::plan {

/// Writes the trees, and each participant's table.
void write_plan(std::ostream& out, const Topology& topology, const Plan& plan);

/// Writes, by ring, its members in rank order and its switches with their parents, ranks and
/// children.
void write_fabric(std::ostream& out, const Topology& topology, const FabricPlan& fabric);

} // namespace weir::plan
