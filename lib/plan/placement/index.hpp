// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A topology as placement needs it, made once: the switches by number, the links between them, and
/// how far each switch is from each.

#include "plan/topology.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::placement {

using plan::kNone;
using plan::LinkId;
using plan::Topology;
using plan::VertexId;

/// A switch by its number among the switches.
using SwitchIndex = std::uint32_t;

/// A cable from a switch to another one.
struct Way {
  SwitchIndex to = 0;
  LinkId link = kNone; // towards `to`
};

class Index {
 public:
  /// `topology` outlives it.
  explicit Index(const Topology& topology);

  const Topology& topology() const { return topology_; }

  std::uint32_t switches() const { return static_cast<std::uint32_t>(first_way_.size() - 1); }

  SwitchIndex switch_at(VertexId vertex) const { return vertex - topology_.node_count(); }

  VertexId vertex_of(SwitchIndex at) const { return at + topology_.node_count(); }

  std::span<const Way> ways(SwitchIndex from) const {
    return std::span(ways_).subspan(first_way_[from], first_way_[from + 1] - first_way_[from]);
  }

  /// Cables between `root` and each switch at the least, by switch; kFar: no way.
  std::span<const std::uint8_t> distances(SwitchIndex root) const {
    return std::span(distances_).subspan(std::size_t{root} * switches(), switches());
  }

  static constexpr std::uint8_t kFar = 255;

  /// Bits a second of a cable, by cable.
  double rate(std::uint32_t cable) const { return rates_[cable]; }

  std::size_t cables() const { return rates_.size(); }

 private:
  void measure_from(SwitchIndex root);

  const Topology& topology_;
  std::vector<std::size_t> first_way_; // by switch, and one more
  std::vector<Way> ways_;
  std::vector<std::uint8_t> distances_;
  std::vector<double> rates_;
};

} // namespace weir::placement
