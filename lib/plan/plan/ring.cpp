// SPDX-License-Identifier: BSD-3-Clause
#include "plan/ring_pass.hpp"
#include "plan/routes.hpp"
#include "plan/schedules.hpp"

#include <algorithm>
#include <map>

namespace weir::plan {
namespace {

/// Row 0 to the right, then the columns from last to first through the other rows, down and up in
/// turn. It is a cycle when the number of columns is even.
std::vector<VertexId> snake(std::uint32_t rows, std::uint32_t columns) {
  std::vector<VertexId> order;
  for (std::uint32_t column = 0; column < columns; ++column) {
    order.push_back(column);
  }
  for (std::uint32_t turn = 0; turn < columns; ++turn) {
    const std::uint32_t column = columns - 1 - turn;
    for (std::uint32_t i = 1; i < rows; ++i) {
      const std::uint32_t row = turn % 2 == 0 ? i : rows - i;
      order.push_back(row * columns + column);
    }
  }
  return order;
}

std::vector<VertexId> grid_order(const Grid& grid) {
  if (grid.columns % 2 == 0 || grid.rows % 2 != 0) {
    return snake(grid.rows, grid.columns);
  }
  std::vector<VertexId> order = snake(grid.columns, grid.rows);
  for (VertexId& node : order) {
    node = node % grid.rows * grid.columns + node / grid.rows; // transposed
  }
  return order;
}

std::vector<VertexId> depth_first_order(const Topology& topology,
                                        std::span<const VertexId> participants) {
  std::vector<bool> is_wanted(topology.vertex_count());
  for (const VertexId node : participants) {
    is_wanted[node] = true;
  }
  std::vector<bool> seen(topology.vertex_count());
  std::vector<VertexId> open{participants.front()};
  std::vector<VertexId> order;
  while (!open.empty()) {
    const VertexId at = open.back();
    open.pop_back();
    if (seen[at]) {
      continue;
    }
    seen[at] = true;
    if (is_wanted[at]) {
      order.push_back(at);
    }
    const auto links = topology.outgoing(at);
    for (auto link = links.rbegin(); link != links.rend(); ++link) {
      open.push_back(topology.link(*link).to);
    }
    // Nodes of this switch come before nodes behind other switches.
    std::stable_partition(open.begin(), open.end(),
                          [&](VertexId vertex) { return !topology.is_node(vertex); });
  }
  return order;
}

std::vector<VertexId> bigraph_order(const BiGraph& shape) {
  const std::uint32_t half = shape.switches / 2;
  std::vector<VertexId> order;
  std::uint32_t upper = 0;
  for (std::uint32_t round = 0; round < shape.nodes_per_switch; ++round) {
    // Round i goes down i places to the right, and up one more. So no link is used twice.
    for (std::uint32_t i = 0; i < half; ++i) {
      const std::uint32_t lower = (upper + round) % half;
      order.push_back(upper * shape.nodes_per_switch + round);
      order.push_back((half + lower) * shape.nodes_per_switch + round);
      upper = (lower + round + 1) % half;
    }
  }
  return order;
}

} // namespace

std::vector<VertexId> neighbourly_order(const Topology& topology,
                                        std::span<const VertexId> participants) {
  if (topology.grid && participants.size() == topology.node_count()) {
    return grid_order(*topology.grid);
  }
  return depth_first_order(topology, participants);
}

std::vector<VertexId> crossing_order(const Topology& topology,
                                     std::span<const VertexId> participants) {
  if (topology.bigraph && participants.size() == topology.node_count()) {
    return bigraph_order(*topology.bigraph);
  }
  std::map<VertexId, std::vector<VertexId>> nodes_of_switch;
  std::size_t most = 0;
  for (const VertexId node : participants) {
    std::vector<VertexId>& nodes = nodes_of_switch[switch_of(topology, node)];
    nodes.push_back(node);
    most = std::max(most, nodes.size());
  }
  std::vector<VertexId> order;
  for (std::size_t round = 0; round < most; ++round) {
    for (const auto& [at, nodes] : nodes_of_switch) {
      if (round < nodes.size()) {
        order.push_back(nodes[round]);
      }
    }
  }
  return order;
}

Schedule ring_schedule(const Topology& topology, std::span<const VertexId> order) {
  const auto size = static_cast<std::uint32_t>(order.size());
  ScheduleBuilder builder(topology, size);
  Router router(topology);
  add_ring_pass(builder, router, {order, {0, size}, 0, 0});
  return std::move(builder).finish(1, Lockstep::none);
}

} // namespace weir::plan
