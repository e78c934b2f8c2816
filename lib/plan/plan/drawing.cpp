// SPDX-License-Identifier: BSD-3-Clause
#include "plan/drawing.hpp"

#include "text/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace weir::plan {
namespace {

/// In double quotes, as DOT requires.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + '"';
}

/// A grid's lines are straight and its nodes have positions; dot lays out all else.
std::string head(const Topology& topology) {
  return fmt::format("digraph weir {{\n"
                     "  graph [rankdir=BT, nodesep=0.3, ranksep=0.8, splines={}, "
                     "fontname=\"sans-serif\"];\n"
                     "  node [fontname=\"sans-serif\", fontsize=11];\n"
                     "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#888888\"];\n",
                     topology.grid ? "line" : "true");
}

struct Place {
  double x = 0;
  double y = 0;
};

constexpr double kPitch = 1.2; // inches between neighbours

Place place_of(const Grid& grid, VertexId node) {
  const std::uint32_t row = node / grid.columns;
  return {kPitch * (node % grid.columns), -kPitch * row};
}

std::string place_text(Place place) {
  return fmt::format("pos=\"{:.2f},{:.2f}!\"", place.x, place.y);
}

std::string vertex_line(const Topology& topology, VertexId vertex) {
  const bool is_node = topology.is_node(vertex);
  return fmt::format("  v{} [label={}, shape={}, style=filled, fillcolor=\"{}\"{}];\n", vertex,
                     quoted(topology.name(vertex)), is_node ? "circle" : "box",
                     is_node ? "#dce9f5" : "#f5e6d3",
                     topology.grid ? ", " + place_text(place_of(*topology.grid, vertex)) : "");
}

std::string vertex_lines(const Topology& topology) {
  std::string lines;
  for (VertexId vertex = 0; vertex < topology.vertex_count(); ++vertex) {
    lines += vertex_line(topology, vertex);
  }
  return lines;
}

/// The end of a line that leaves the grid from `node` towards the node at the other end of its row
/// or column: half a pitch outside.
Place outside(const Grid& grid, VertexId node, VertexId other) {
  const Place own = place_of(grid, node);
  const Place far = place_of(grid, other);
  const auto away = [](double from, double to) {
    return from == to ? from : from + (from < to ? -kPitch / 2 : kPitch / 2);
  };
  return {away(own.x, far.x), away(own.y, far.y)};
}

bool goes_round(const Grid& grid, VertexId from, VertexId to) {
  const std::uint32_t columns = std::max(from % grid.columns, to % grid.columns) -
                                std::min(from % grid.columns, to % grid.columns);
  const std::uint32_t rows = std::max(from / grid.columns, to / grid.columns) -
                             std::min(from / grid.columns, to / grid.columns);
  return columns + rows > 1;
}

/// A line between neighbours. A torus's wrapped link leaves the picture and comes in again.
std::string edge_lines(const Topology& topology, VertexId from, VertexId to,
                       std::string_view attributes) {
  if (!topology.grid || !goes_round(*topology.grid, from, to)) {
    return fmt::format("  v{} -> v{} [{}];\n", from, to, attributes);
  }
  const auto point = [&](VertexId at, VertexId other) {
    const std::string name = fmt::format("out{}_{}", at, other);
    return std::pair(name, fmt::format("  {} [shape=point, width=0.01, color=\"#dddddd\", {}];\n",
                                       name, place_text(outside(*topology.grid, at, other))));
  };
  const auto [leaves, leaves_line] = point(from, to);
  const auto [enters, enters_line] = point(to, from);
  return leaves_line + enters_line +
         fmt::format("  v{} -> {} [{}];\n  {} -> v{} [{}];\n", from, leaves, attributes, enters, to,
                     attributes);
}

/// Parallel equal cables become one line with their number. Pale cables have no label.
std::string cable_lines(const Topology& topology, std::string_view pale) {
  std::map<std::tuple<VertexId, VertexId, std::uint64_t>, std::uint32_t> cables;
  for (LinkId link = 0; link < topology.links().size(); link += 2) {
    const Link& one = topology.link(link);
    ++cables[std::tuple(one.from, one.to, one.traits.bits_per_second)];
  }
  std::string lines;
  for (const auto& [ends, count] : cables) {
    const auto& [from, to, rate] = ends;
    const std::string label =
        fmt::format("{}{}", count > 1 ? fmt::format("{} x ", count) : "", text::rate_text(rate));
    lines += edge_lines(topology, from, to,
                        pale.empty() ? fmt::format("dir=none, label=\"{}\"", label)
                                     : fmt::format("dir=none, {}", pale));
  }
  return lines;
}

constexpr std::string_view kTreeEdge = "color=\"#1b6ca8\", penwidth=2";

/// Parents above their children. Vertices between them are left out.
std::string logical_tree_lines(const Topology& topology, const Tree& tree) {
  std::string lines = vertex_line(topology, tree.root);
  for (const TreeEdge& edge : tree.edges) {
    lines += vertex_line(topology, edge.child);
    lines += fmt::format("  v{} -> v{} [dir=back, {}, fontcolor=\"#1b6ca8\", label=\"{}\"];\n",
                         edge.child, edge.parent, kTreeEdge, edge.step);
  }
  return lines;
}

std::string engine_for(const Topology& topology) {
  return topology.grid ? "neato" : "dot";
}

} // namespace

Drawing draw_topology(const Topology& topology) {
  return {engine_for(topology),
          head(topology) + vertex_lines(topology) + cable_lines(topology, "") + "}\n"};
}

Drawing draw_tree(const Topology& topology, const Forest& forest, const Tree& tree) {
  std::string text = head(topology);
  if (!topology.grid) {
    return {"dot", text + logical_tree_lines(topology, tree) + "}\n"};
  }
  text += vertex_lines(topology);
  text += fmt::format("  v{} [penwidth=3];\n", tree.root);
  text += cable_lines(topology, "color=\"#dddddd\"");
  for (const TreeEdge& edge : tree.edges) {
    for (std::uint32_t i = 0; i < edge.route.count; ++i) {
      const Link& link = topology.link(forest.routes[edge.route.begin + i]);
      text +=
          edge_lines(topology, link.from, link.to,
                     fmt::format("{}, fontcolor=\"#1b6ca8\", label=\"{}\"", kTreeEdge, edge.step));
    }
  }
  return {"neato", text + "}\n"};
}

Drawing draw_ring(const Topology& topology, const FabricRing& ring) {
  std::string text = head(topology);
  for (const FabricSwitch& one : ring.switches) {
    text += fmt::format("  v{} [label={}, shape=box, style=filled, fillcolor=\"#f5e6d3\"];\n",
                        one.vertex,
                        quoted(fmt::format("{}\nranks {} to {}", topology.name(one.vertex),
                                           one.first_rank, one.first_rank + one.rank_count - 1)));
    for (const FabricChild& child : one.children) {
      if (topology.is_node(child.vertex)) {
        text += fmt::format(
            "  v{} [label={}, shape=circle, style=filled, fillcolor=\"#dce9f5\"];\n", child.vertex,
            quoted(fmt::format("{}\nrank {}", topology.name(child.vertex), child.first_rank)));
      }
      text += fmt::format("  v{} -> v{} [label=\"{}\"];\n", child.vertex, one.vertex,
                          text::rate_text(topology.link(child.down).traits.bits_per_second));
    }
  }
  return {"dot", text + "}\n"};
}

} // namespace weir::plan
