// SPDX-License-Identifier: BSD-3-Clause
#include "placement/index.hpp"

namespace weir::placement {

Index::Index(const Topology& topology) : topology_(topology) {
  for (SwitchIndex at = 0; at < topology.switch_count(); ++at) {
    first_way_.push_back(ways_.size());
    for (const LinkId link : topology.outgoing(vertex_of(at))) {
      const VertexId to = topology.link(link).to;
      if (!topology.is_node(to)) {
        ways_.push_back({switch_at(to), link});
      }
    }
  }
  first_way_.push_back(ways_.size());
  for (LinkId link = 0; link < topology.links().size(); link += 2) {
    rates_.push_back(static_cast<double>(topology.link(link).traits.bits_per_second));
  }
  distances_.assign(std::size_t{switches()} * switches(), kFar);
  for (SwitchIndex root = 0; root < switches(); ++root) {
    measure_from(root);
  }
}

/// Breadth first.
void Index::measure_from(SwitchIndex root) {
  std::uint8_t* const distance = distances_.data() + std::size_t{root} * switches();
  std::vector<SwitchIndex> open{root};
  distance[root] = 0;
  for (std::size_t next = 0; next < open.size(); ++next) {
    const SwitchIndex at = open[next];
    for (const Way& way : ways(at)) {
      if (distance[way.to] == kFar && distance[at] + 1 < kFar) {
        distance[way.to] = static_cast<std::uint8_t>(distance[at] + 1);
        open.push_back(way.to);
      }
    }
  }
}

} // namespace weir::placement
