// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What is on which NUMA node, and what an operator is told where frames cross between two. No EAL:
/// the caller knows the nodes.

#include "control/placement.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::control {

/// A port, and the NUMA node of its device.
struct PortNode {
  std::string name; // empty: there is no port at this place
  int node = kNoNode;
};

/// The right node for the memory of all frames: that of most ports; of several such, the lowest.
/// kNoNode if no port is on a node.
int node_of_frames(const std::vector<PortNode>& ports);

/// A line for each place where frames cross from one node to another, with what would be right:
/// between a port and the frames' memory, a port and an lcore that polls it, a worker and the
/// frames' memory, which is on node `frames`. `ports` by place.
std::vector<std::string> crossings(const std::vector<PortNode>& ports, const Placement& placement,
                                   int frames);

/// The line for memory that should be on `node`, where EAL had no room. `what` is a plural.
std::string misplaced(std::string_view what, int node);

} // namespace weir::control
