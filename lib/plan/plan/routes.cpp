// SPDX-License-Identifier: BSD-3-Clause
#include "plan/routes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::plan {
namespace {

/// The next coordinate after `at` on the shorter way from `from` to `to` in a dimension of `size`.
/// If both ways are equal, the parity of `from` decides.
std::uint32_t next_coordinate(std::uint32_t from, std::uint32_t to, std::uint32_t at,
                              std::uint32_t size, Grid::Edges edges) {
  if (edges == Grid::Edges::open) {
    return at < to ? at + 1 : at - 1;
  }
  const std::uint32_t upwards = (to + size - from) % size;
  const bool goes_up = 2 * upwards < size || (2 * upwards == size && from % 2 == 0);
  return goes_up ? (at + 1) % size : (at + size - 1) % size;
}

} // namespace

VertexId switch_of(const Topology& topology, VertexId node) {
  for (const LinkId id : topology.outgoing(node)) {
    if (!topology.is_node(topology.link(id).to)) {
      return topology.link(id).to;
    }
  }
  return kNone;
}

std::vector<LinkId> Router::route(VertexId from, VertexId to) {
  std::vector<LinkId> links;
  for (VertexId at = from; at != to; at = topology_.link(links.back()).to) {
    links.push_back(topology_.route_rule == RouteRule::dimension_order && topology_.grid
                        ? along_dimensions(from, to, at)
                        : shortest(from, to, at));
  }
  return links;
}

const std::vector<std::uint32_t>& Router::hops_to(VertexId to) {
  const auto [entry, is_new] = hops_.try_emplace(to);
  std::vector<std::uint32_t>& hops = entry->second;
  if (is_new) {
    hops.assign(topology_.vertex_count(), kNone);
    hops[to] = 0;
    std::vector<VertexId> open{to};
    for (std::size_t next = 0; next < open.size(); ++next) {
      const VertexId at = open[next];
      if (at != to && !topology_.passes_on(at)) {
        continue;
      }
      for (const LinkId id : topology_.outgoing(at)) {
        const VertexId before = topology_.link(id).to;
        if (hops[before] == kNone) {
          hops[before] = hops[at] + 1;
          open.push_back(before);
        }
      }
    }
  }
  return hops;
}

std::uint32_t Router::choice(VertexId from, VertexId to) const {
  switch (topology_.route_rule) {
  case RouteRule::by_source:
    return from;
  case RouteRule::by_destination_switch: {
    const VertexId at = switch_of(topology_, to);
    return at == kNone ? to : at - topology_.node_count();
  }
  default:
    return to;
  }
}

LinkId Router::shortest(VertexId from, VertexId to, VertexId at) {
  const std::vector<std::uint32_t>& hops = hops_to(to);
  std::vector<LinkId> ways;
  for (const LinkId id : topology_.outgoing(at)) {
    const VertexId next = topology_.link(id).to;
    if (hops[next] != kNone && hops[next] < hops[at] && (next == to || topology_.passes_on(next))) {
      ways.push_back(id);
    }
  }
  if (ways.empty()) {
    throw PlanError(
        fmt::format("no way leads from {} to {}", topology_.name(from), topology_.name(to)));
  }
  return ways[choice(from, to) % ways.size()];
}

LinkId Router::along_dimensions(VertexId from, VertexId to, VertexId at) const {
  const Grid& grid = *topology_.grid;
  const std::uint32_t row = at / grid.columns;
  const std::uint32_t column = at % grid.columns;
  if (column != to % grid.columns) {
    const std::uint32_t next =
        next_coordinate(from % grid.columns, to % grid.columns, column, grid.columns, grid.edges);
    return link_between(at, row * grid.columns + next);
  }
  const std::uint32_t next =
      next_coordinate(from / grid.columns, to / grid.columns, row, grid.rows, grid.edges);
  return link_between(at, next * grid.columns + column);
}

LinkId Router::link_between(VertexId from, VertexId to) const {
  for (const LinkId id : topology_.outgoing(from)) {
    if (topology_.link(id).to == to) {
      return id;
    }
  }
  throw PlanError(
      fmt::format("no link leads from {} to {}", topology_.name(from), topology_.name(to)));
}

} // namespace weir::plan
