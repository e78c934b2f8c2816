// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The networks of MultiTree's evaluation (ISCA'21 §V, Table III), and the time that an algorithm
/// takes on one.

#include "figure.hpp"
#include "plan/topology.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::figures::multitree {

enum class Shape : std::uint8_t { torus, mesh, dgx2, fat_tree, bigraph };

struct Network {
  Shape shape{};
  std::uint32_t size = 0; // nodes on a grid's side, or nodes in all

  auto operator<=>(const Network&) const = default;
};

inline constexpr Network kTorus4{Shape::torus, 4};
inline constexpr Network kTorus8{Shape::torus, 8};
inline constexpr Network kMesh4{Shape::mesh, 4};
inline constexpr Network kMesh8{Shape::mesh, 8};
inline constexpr std::array kGrids{kTorus4, kTorus8, kMesh4, kMesh8};
inline constexpr Network kDgx2{Shape::dgx2, 16};
inline constexpr Network kFatTree{Shape::fat_tree, 64};
inline constexpr Network kBiGraph32{Shape::bigraph, 32};
inline constexpr Network kBiGraph64{Shape::bigraph, 64};
inline constexpr std::array kSwitched{kDgx2, kFatTree, kBiGraph32, kBiGraph64};

/// "torus 4", "fat tree 64": the names in values.
std::string name_of(const Network& network);
/// All its cables are equal; with the mutation, node 0's first has half the rate.
plan::Topology topology_of(const Network& network, Mutation mutation = Mutation::none);

/// The algorithm. `message` is MULTITREE with one header per message (§IV-B).
enum class Way : std::uint8_t { ring, double_tree, ring_2d, hdrm, multitree, message };

std::string_view name_of(Way way);

/// Which packet a link takes next: the one that has waited longest, as in the authors' simulator;
/// or the one with the earlier step.
enum class Order : std::uint8_t { as_published, in_step };

/// Whether an accelerator needs time to reduce.
enum class Reduction : std::uint8_t { timed, free };

/// Where packets wait. `by_shape`: on grids in FIFOs of virtual channels with credits (Table III),
/// in switch networks in FIFOs without limit, which give the same times unless flows block each
/// other. `with_credits`: virtual channels everywhere.
enum class Buffers : std::uint8_t { by_shape, with_credits };

/// How 2D-RING's flows are numbered, which decides by which channel they leave. `by_line`: by the
/// line that they go round, so each direction has a channel of its own. `by_root`: by root first,
/// as in the authors' program, so the channel of a direction changes with each step.
enum class FlowNumbers : std::uint8_t { by_line, by_root };

/// RING's packets have every link to themselves, so waves take the same time as packets; a row of
/// MT7 shows it. With the other algorithms, packets of different steps meet, and waves behave
/// differently.
inline constexpr std::uint32_t kRingWave = 16;

struct Run {
  Network network;
  Way way{};
  std::uint64_t bytes = 0;
  Order order = Order::as_published;
  Mutation mutation = Mutation::none;
  Reduction reduction = Reduction::timed;
  Buffers buffers = Buffers::by_shape;
  std::uint32_t packets_at_once = 1;
  FlowNumbers flows = FlowNumbers::by_line;

  auto operator<=>(const Run&) const = default;
};

/// Microseconds; at 1 GHz also kilocycles. Each run is made once, even if several figures use it.
double microseconds(const Run& run);

} // namespace weir::figures::multitree
