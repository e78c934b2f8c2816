// SPDX-License-Identifier: BSD-3-Clause
#include "plan/ring_pass.hpp"
#include "plan/schedules.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace weir::plan {
namespace {

using Lines = std::vector<std::vector<VertexId>>;

Lines rows_of(const Grid& grid) {
  Lines lines(grid.rows);
  for (VertexId node = 0; node < grid.rows * grid.columns; ++node) {
    lines[node / grid.columns].push_back(node);
  }
  return lines;
}

Lines columns_of(const Grid& grid) {
  Lines lines(grid.columns);
  for (VertexId node = 0; node < grid.rows * grid.columns; ++node) {
    lines[node % grid.columns].push_back(node);
  }
  return lines;
}

class Passes {
 public:
  Passes(const Topology& topology, std::uint32_t quarter)
      : quarter_(quarter), builder_(topology, 4 * quarter), router_(topology) {}

  /// Half of the data (0 or 1); a quarter goes each way along every line.
  void add(const Lines& lines, std::uint32_t half, Step steps_before) {
    for (std::vector<VertexId> line : lines) {
      for (std::uint32_t direction = 0; direction < 2; ++direction) {
        const ChunkRange chunks{(2 * half + direction) * quarter_, quarter_};
        add_ring_pass(builder_, router_, {line, chunks, steps_before, next_flow_});
        next_flow_ += static_cast<FlowId>(line.size());
        std::ranges::reverse(line);
      }
    }
  }

  Schedule finish() && { return std::move(builder_).finish(4, Lockstep::none); }

 private:
  std::uint32_t quarter_; // chunks
  FlowId next_flow_ = 0;
  ScheduleBuilder builder_;
  Router router_;
};

} // namespace

Schedule ring_2d_schedule(const Topology& topology) {
  const Grid& grid = *topology.grid;
  const Lines rows = rows_of(grid);
  const Lines columns = columns_of(grid);
  const Step phase = 2 * (std::max(grid.rows, grid.columns) - 1);
  Passes passes(topology, std::lcm(grid.rows, grid.columns));
  passes.add(rows, 0, 0);
  passes.add(columns, 1, 0);
  passes.add(columns, 0, phase);
  passes.add(rows, 1, phase);
  return std::move(passes).finish();
}

} // namespace weir::plan
