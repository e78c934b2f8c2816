// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Plans as text: YAML for programs (docs/planner.md, "What comes out"), tables for people.

#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/topology.hpp"

#include <ostream>

namespace weir::plan {

/// Trees and, for each participant, its table.
void write_plan(std::ostream& out, const Topology& topology, const Plan& plan);

/// By ring: its members in rank order, its switches, and of each its parent, ranks and children.
void write_fabric(std::ostream& out, const Topology& topology, const FabricPlan& fabric);

} // namespace weir::plan
