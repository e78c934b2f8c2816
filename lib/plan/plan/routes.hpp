// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Unicast: the one shortest way from node to node by the topology's rule.

#include "plan/topology.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace weir::plan {

/// The first switch that a node has a link to. kNone: none.
VertexId switch_of(const Topology& topology, VertexId node);

class Router {
 public:
  explicit Router(const Topology& topology) : topology_(topology) {}

  /// Links in order. Errors: PlanError when there is no way.
  std::vector<LinkId> route(VertexId from, VertexId to);

 private:
  const std::vector<std::uint32_t>& hops_to(VertexId to);
  std::uint32_t choice(VertexId from, VertexId to) const;
  LinkId shortest(VertexId from, VertexId to, VertexId at);
  LinkId along_dimensions(VertexId from, VertexId to, VertexId at) const;
  LinkId link_between(VertexId from, VertexId to) const;

  const Topology& topology_;
  std::map<VertexId, std::vector<std::uint32_t>> hops_; // by destination: hops from each vertex
};

} // namespace weir::plan
