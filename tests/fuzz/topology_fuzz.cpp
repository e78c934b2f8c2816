// SPDX-License-Identifier: BSD-3-Clause

/// Any text gives a topology or a ConfigError. For a small topology every plan is made and written,
/// or gives a PlanError.

#include "plan/algorithms.hpp"
#include "plan/drawing.hpp"
#include "plan/fabric.hpp"
#include "plan/plan_file.hpp"
#include "plan/topology_file.hpp"
#include "yaml/error.hpp"

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string_view>

namespace {

using namespace weir::plan;

void write_plans(const Topology& topology) {
  std::ostringstream out;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::ring_across, Algorithm::double_binary_tree, Algorithm::ring_2d,
        Algorithm::hdrm, Algorithm::multitree}) {
    try {
      const Plan plan = make_plan(topology, algorithm);
      write_plan(out, topology, plan);
      for (const Tree& tree : plan.forest.trees) {
        draw_tree(topology, plan.forest, tree);
      }
    } catch (const PlanError&) {
      continue;
    }
  }
}

void write_rings(const Topology& topology) {
  std::ostringstream out;
  try {
    const FabricPlan fabric = plan_fabric(topology, every_node(topology), 8);
    write_fabric(out, topology, fabric);
    draw_ring(topology, fabric.rings.front());
  } catch (const PlanError&) {
    return;
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Topology topology = parse_topology(text, "fuzz");
    if (topology.vertex_count() <= 48 && topology.links().size() <= 512) {
      draw_topology(topology);
      write_plans(topology);
      write_rings(topology);
    }
  } catch (const weir::yaml::Error&) {
    return 0;
  }
  return 0;
}
