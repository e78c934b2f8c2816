// SPDX-License-Identifier: BSD-3-Clause
#include "plan/routes.hpp"
#include "plan/schedule_builder.hpp"
#include "plan/schedules.hpp"

#include <algorithm>
#include <bit>

namespace weir::plan {

std::vector<VertexId> hdrm_placement(const BiGraph& shape) {
  const std::uint32_t half = shape.switches / 2;
  std::vector<std::uint32_t> upper;
  std::vector<std::uint32_t> lower;
  for (std::uint32_t i = 0; i < half; ++i) {
    const bool is_swapped = std::popcount(i) % 2 != 0;
    upper.push_back(2 * i + (is_swapped ? 1 : 0));
    lower.push_back(2 * i + (is_swapped ? 0 : 1));
  }
  std::vector<VertexId> node_of_rank(std::size_t{shape.nodes_per_switch} * shape.switches);
  for (std::uint32_t j = 0; j < shape.nodes_per_switch; ++j) {
    std::vector<std::uint32_t> first = std::popcount(j) % 2 != 0 ? lower : upper;
    const std::vector<std::uint32_t>& second = std::popcount(j) % 2 != 0 ? upper : lower;
    std::rotate(first.begin(), first.end() - j % half, first.end());
    first.insert(first.end(), second.begin(), second.end());
    for (std::uint32_t at = 0; at < shape.switches; ++at) {
      node_of_rank[first[at] + j * shape.switches] = at * shape.nodes_per_switch + j;
    }
  }
  return node_of_rank;
}

Schedule hdrm_schedule(const Topology& topology) {
  const std::vector<VertexId> node_of_rank = hdrm_placement(*topology.bigraph);
  const auto ranks = static_cast<std::uint32_t>(node_of_rank.size());
  const auto rounds = static_cast<std::uint32_t>(std::countr_zero(ranks));
  ScheduleBuilder builder(topology, ranks);
  Router router(topology);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    // The chunks that this rank still adds up: after each round, the half on its side of the
    // middle.
    ChunkRange own{0, ranks};
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::uint32_t partner = rank ^ (1U << round);
      const ChunkRange low{own.first, own.count / 2};
      const ChunkRange high{own.first + own.count / 2, own.count / 2};
      const bool keeps_low = rank < partner;
      own = keeps_low ? low : high;
      const VertexId from = node_of_rank[rank];
      const VertexId to = node_of_rank[partner];
      const std::vector<LinkId> route = router.route(from, to);
      builder.add({Operation::reduce, rank, from, to, round + 1, keeps_low ? high : low, {}},
                  route);
      builder.add({Operation::gather, rank, from, to, 2 * rounds - round, own, {}}, route);
    }
  }
  return std::move(builder).finish(1, Lockstep::none);
}

} // namespace weir::plan
