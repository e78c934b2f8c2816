// SPDX-License-Identifier: BSD-3-Clause

/// Figures of MultiTree (ISCA'21): the form of its trees. multitree_simulated.cpp has the times.

#include "figure.hpp"
#include "multitree_networks.hpp"
#include "multitree_simulated.hpp"
#include "multitree_training.hpp"
#include "plan/algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

namespace weir::figures::multitree {
namespace {

using plan::Algorithm;

plan::Plan multitree_on(const Network& network, Mutation mutation = Mutation::none) {
  return plan::make_plan(topology_of(network, mutation), Algorithm::multitree);
}

/// Steps of one phase.
std::uint32_t steps_of(const plan::Plan& plan) {
  return plan.forest.step_count;
}

/// Links that messages of each step of all-gather cross; its steps follow those of reduce-scatter.
std::vector<std::uint32_t> links_by_step(const plan::Plan& plan) {
  std::vector<std::uint32_t> links(steps_of(plan));
  for (const plan::Tree& tree : plan.forest.trees) {
    for (const plan::TreeEdge& edge : tree.edges) {
      links.at(edge.step - 1) += edge.route.count;
    }
  }
  return links;
}

/// Whether two trees use one link in the same step.
bool has_conflict(const plan::Plan& plan) {
  std::map<std::pair<plan::Step, plan::LinkId>, int> uses;
  for (const plan::Tree& tree : plan.forest.trees) {
    for (const plan::TreeEdge& edge : tree.edges) {
      for (std::uint32_t hop = 0; hop < edge.route.count; ++hop) {
        ++uses[{edge.step, plan.forest.routes[edge.route.begin + hop]}];
      }
    }
  }
  return std::ranges::any_of(uses, [](const auto& use) { return use.second > 1; });
}

std::uint32_t tallest(const plan::Plan& plan) {
  std::uint32_t most = 0;
  for (const plan::Tree& tree : plan.forest.trees) {
    most = std::max(most, plan::height_of(tree));
  }
  return most;
}

/// The step at which a tree adds an edge; 0 when it has no such edge.
plan::Step step_of(const plan::Tree& tree, plan::VertexId parent, plan::VertexId child) {
  for (const plan::TreeEdge& edge : tree.edges) {
    if (edge.parent == parent && edge.child == child) {
      return edge.step;
    }
  }
  return 0;
}

/// Fig. 3 and 5: all pairs of neighbours of the 2x2 mesh, in every tree.
void two_by_two(Results& results) {
  const plan::Plan plan = multitree_on({Shape::mesh, 2});
  for (const plan::Tree& tree : plan.forest.trees) {
    for (plan::VertexId parent = 0; parent < 4; ++parent) {
      for (plan::VertexId child = 0; child < 4; ++child) {
        const plan::Step step = step_of(tree, parent, child);
        if (step != 0) {
          results.value(fmt::format("2x2.T{}.{}-{}", tree.root, parent, child), step);
        }
      }
    }
  }
}

/// A deliberate error in a plan, for tests: one edge is added a step late.
void delay_an_edge(plan::Plan& plan) {
  plan::TreeEdge& last = plan.forest.trees.front().edges.back();
  ++last.step;
  plan.forest.step_count = std::max(plan.forest.step_count, last.step);
}

void construction(const Settings& settings, Results& results) {
  for (const std::uint32_t side : {4U, 6U, 8U, 10U, 12U, 14U, 16U}) {
    plan::Plan plan = multitree_on({Shape::torus, side}, settings.mutation);
    if (settings.mutation == Mutation::step_later) {
      delay_an_edge(plan);
    }
    results.value(fmt::format("steps.torus {}", side), steps_of(plan));
    results.value(fmt::format("conflict.torus {}", side), has_conflict(plan) ? 1 : 0);
    const std::vector<std::uint32_t> links = links_by_step(plan);
    for (std::size_t step = 0; side <= 8 && step < links.size(); ++step) {
      if (side == 4 || step == 0 || step + 3 >= links.size()) {
        results.value(fmt::format("links.torus {}.step {}", side, step + 1), links[step]);
      }
    }
  }
  for (const std::uint32_t side : {4U, 8U}) {
    const plan::Plan plan = multitree_on({Shape::mesh, side}, settings.mutation);
    results.value(fmt::format("steps.mesh {}", side), steps_of(plan));
  }
  for (const Network& network : kSwitched) {
    const plan::Plan plan = multitree_on(network, settings.mutation);
    results.value(fmt::format("steps.{}", name_of(network)), steps_of(plan));
    results.value(fmt::format("height.{}", name_of(network)), tallest(plan));
    results.value(fmt::format("conflict.{}", name_of(network)), has_conflict(plan) ? 1 : 0);
  }
  const plan::Topology torus = topology_of({Shape::torus, 4});
  const plan::Plan ring = plan::make_plan(torus, Algorithm::ring);
  const auto in_first_step = std::ranges::count(ring.schedule.messages, 1U, &plan::Message::step);
  results.value("steps.ring.torus 4", ring.schedule.step_count / 2);
  results.value("share.ring.torus 4",
                static_cast<double>(in_first_step) / static_cast<double>(torus.links().size()));
  two_by_two(results);
}

template <const Network& Which>
void oracle(const Settings& settings, Results& results) {
  compare_with_oracle(Which, settings, results);
}

constexpr std::array kFigures{
    Figure{"MTC", construction},
    Figure{"MTO1", oracle<kTorus4>},
    Figure{"MTO2", oracle<kTorus8>},
    Figure{"MTO3", oracle<kMesh4>},
    Figure{"MTO4", oracle<kMesh8>},
    Figure{"MTO5", oracle<kDgx2>},
    Figure{"MTO6", oracle<kFatTree>},
    Figure{"MTO7", oracle<kBiGraph32>},
    Figure{"MTO8", oracle<kBiGraph64>},
    Figure{"MT1", best_on_tori},
    Figure{"MT2", worst_on_grids},
    Figure{"MT3", rings_on_meshes},
    Figure{"MT4", over_ring},
    Figure{"MT5", break_even},
    Figure{"MT6", over_hdrm},
    Figure{"MT7", scaling},
    Figure{"MT8", gradients},
    Figure{"MT9", training},
    Figure{"MT10", overlapped_training},
};

} // namespace
} // namespace weir::figures::multitree

std::span<const weir::figures::Figure> weir::figures::multitree_figures() {
  return multitree::kFigures;
}
