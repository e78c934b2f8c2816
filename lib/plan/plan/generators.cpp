// SPDX-License-Identifier: BSD-3-Clause
#include "plan/generators.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace weir::plan {
namespace {

void require_range(std::string_view what, std::uint64_t value, std::uint64_t least,
                   std::uint64_t most) {
  if (value < least || value > most) {
    throw PlanError(fmt::format("{}: found {}; allowed: {} to {}", what, value, least, most));
  }
}

std::vector<std::string> numbered(std::string_view stem, std::uint32_t count) {
  std::vector<std::string> names;
  names.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    names.push_back(fmt::format("{}{}", stem, i));
  }
  return names;
}

std::vector<std::string> joined(std::vector<std::string> first, std::vector<std::string> second) {
  first.insert(first.end(), std::make_move_iterator(second.begin()),
               std::make_move_iterator(second.end()));
  return first;
}

enum Side : std::size_t { north, south, west, east };

/// The links of a grid's node by side; kNone at the grid's edge.
using Sides = std::array<LinkId, 4>;

class GridBuilder {
 public:
  GridBuilder(Grid grid, LinkTraits traits)
      : grid_(grid), traits_(traits), topology_(numbered("n", grid.rows * grid.columns), {}),
        sides_(topology_.node_count(), Sides{kNone, kNone, kNone, kNone}) {}

  Topology build() {
    for (std::uint32_t row = 0; row < grid_.rows; ++row) {
      for (std::uint32_t column = 0; column < grid_.columns; ++column) {
        connect_onwards(row, column);
      }
    }
    for (VertexId node = 0; node < topology_.node_count(); ++node) {
      std::vector<LinkId> order;
      for (const LinkId link : sides_[node]) {
        if (link != kNone) {
          order.push_back(link);
        }
      }
      topology_.prefer(node, std::move(order));
    }
    topology_.grid = grid_;
    topology_.route_rule = RouteRule::dimension_order;
    return std::move(topology_);
  }

 private:
  VertexId at(std::uint32_t row, std::uint32_t column) const {
    return row % grid_.rows * grid_.columns + column % grid_.columns;
  }

  void connect_onwards(std::uint32_t row, std::uint32_t column) {
    const bool wraps = grid_.edges == Grid::Edges::wrapped;
    if (wraps || row + 1 < grid_.rows) {
      join(at(row, column), south, at(row + 1, column), north);
    }
    if (wraps || column + 1 < grid_.columns) {
      join(at(row, column), east, at(row, column + 1), west);
    }
  }

  void join(VertexId a, Side side_of_a, VertexId b, Side side_of_b) {
    const LinkId link = topology_.connect(a, b, traits_);
    sides_[a][side_of_a] = link;
    sides_[b][side_of_b] = Topology::reverse_of(link);
  }

  Grid grid_;
  LinkTraits traits_;
  Topology topology_;
  std::vector<Sides> sides_;
};

Topology make_grid(Grid grid, LinkTraits link) {
  require_range("rows of a grid", grid.rows, 2, kMostVertices);
  require_range("columns of a grid", grid.columns, 2, kMostVertices);
  require_range("nodes of a grid", std::uint64_t{grid.rows} * grid.columns, 4, kMostVertices);
  return GridBuilder(grid, link).build();
}

/// Connects node i to switch i / nodes_per_switch, for the first `switches` of them.
void attach_nodes(Topology& topology, std::uint32_t nodes_per_switch, LinkTraits link) {
  for (VertexId node = 0; node < topology.node_count(); ++node) {
    topology.connect(node, topology.node_count() + node / nodes_per_switch, link);
  }
}

} // namespace

Topology make_torus(std::uint32_t rows, std::uint32_t columns, LinkTraits link) {
  return make_grid({rows, columns, Grid::Edges::wrapped}, link);
}

Topology make_mesh(std::uint32_t rows, std::uint32_t columns, LinkTraits link) {
  return make_grid({rows, columns, Grid::Edges::open}, link);
}

Topology make_spine_leaf(const LeafSpine& shape) {
  require_range("leaves", shape.leaves, 1, kMostVertices);
  require_range("nodes_per_leaf", shape.nodes_per_leaf, 1, kMostVertices);
  require_range("spines", shape.spines, 1, kMostVertices);
  require_range("nodes", std::uint64_t{shape.leaves} * shape.nodes_per_leaf, 1, kMostVertices);
  require_range("links between leaves and spines", std::uint64_t{shape.leaves} * shape.spines, 1,
                kMostLinks);
  Topology topology(numbered("n", shape.leaves * shape.nodes_per_leaf),
                    joined(numbered("leaf", shape.leaves), numbered("spine", shape.spines)));
  attach_nodes(topology, shape.nodes_per_leaf, shape.host);
  const VertexId first_leaf = topology.node_count();
  const VertexId first_spine = first_leaf + shape.leaves;
  for (std::uint32_t leaf = 0; leaf < shape.leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < shape.spines; ++spine) {
      topology.connect(first_leaf + leaf, first_spine + spine, shape.uplink);
    }
  }
  topology.route_rule = RouteRule::by_source;
  return topology;
}

Topology make_fat_tree(std::uint32_t leaves, std::uint32_t nodes_per_leaf, LinkTraits link) {
  return make_spine_leaf({leaves, nodes_per_leaf, nodes_per_leaf, link, link});
}

Topology make_bigraph(std::uint32_t nodes_per_switch, std::uint32_t switches, LinkTraits host,
                      LinkTraits between) {
  require_range("nodes_per_switch", nodes_per_switch, 1, kMostVertices);
  require_range("switches", switches, 2, 4096);
  require_range("nodes", std::uint64_t{nodes_per_switch} * switches, 2, kMostVertices);
  if (switches % 2 != 0) {
    throw PlanError(fmt::format("switches: found {}; allowed: an even number", switches));
  }
  const std::uint32_t half = switches / 2;
  Topology topology(numbered("n", nodes_per_switch * switches),
                    joined(numbered("upper", half), numbered("lower", half)));
  attach_nodes(topology, nodes_per_switch, host);
  const VertexId first_upper = topology.node_count();
  for (std::uint32_t upper = 0; upper < half; ++upper) {
    for (std::uint32_t lower = 0; lower < half; ++lower) {
      topology.connect(first_upper + upper, first_upper + half + lower, between);
    }
  }
  topology.bigraph = {nodes_per_switch, switches};
  topology.route_rule = RouteRule::by_destination_switch;
  return topology;
}

Topology make_dgx2(LinkTraits host, LinkTraits between) {
  constexpr std::uint32_t nodes_per_switch = 8;
  Topology topology(numbered("n", 2 * nodes_per_switch), numbered("s", 2));
  attach_nodes(topology, nodes_per_switch, host);
  for (std::uint32_t cable = 0; cable < nodes_per_switch; ++cable) {
    topology.connect(topology.node_count(), topology.node_count() + 1, between);
  }
  return topology;
}

Topology make_star(std::uint32_t nodes, LinkTraits link) {
  require_range("nodes", nodes, 2, kMostVertices);
  Topology topology(numbered("n", nodes), {"hub"});
  attach_nodes(topology, nodes, link);
  return topology;
}

} // namespace weir::plan
