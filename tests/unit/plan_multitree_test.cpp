// SPDX-License-Identifier: BSD-3-Clause

/// MultiTree's trees compared with those of two other implementations of Algorithm 1 (an
/// independent one and the authors' public simulator) and with the paper's Figs 3 and 5.

#include "plan/algorithms.hpp"
#include "plan/generators.hpp"
#include "plan/tree.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace weir::plan::plan_multitree_test {
namespace {

constexpr LinkTraits kLink{128'000'000'000, 150};

Forest forest_of(const Topology& topology) {
  return grow_forest(topology, every_node(topology));
}

/// By step, from 1: how many links carry a gather.
std::vector<std::size_t> links_used(const Forest& forest) {
  std::vector<std::size_t> used(forest.step_count);
  for (const Tree& tree : forest.trees) {
    for (const TreeEdge& edge : tree.edges) {
      used[edge.step - 1] += edge.route.count;
    }
  }
  return used;
}

std::uint32_t greatest_height(const Forest& forest) {
  std::uint32_t greatest = 0;
  for (const Tree& tree : forest.trees) {
    greatest = std::max(greatest, height_of(tree));
  }
  return greatest;
}

struct Steps {
  std::string name;
  Topology topology;
  Step steps;
};

void PrintTo(const Steps& row, std::ostream* out) {
  *out << row.name;
}

class ConstructionTable : public testing::TestWithParam<Steps> {};

TEST_P(ConstructionTable, TakesTheStepsOfAlgorithm1) {
  EXPECT_EQ(forest_of(GetParam().topology).step_count, GetParam().steps);
}

INSTANTIATE_TEST_SUITE_P(Topologies, ConstructionTable,
                         testing::Values(Steps{"torus4", make_torus(4, 4, kLink), 5},
                                         Steps{"torus6", make_torus(6, 6, kLink), 10},
                                         Steps{"torus8", make_torus(8, 8, kLink), 17},
                                         Steps{"torus10", make_torus(10, 10, kLink), 26},
                                         Steps{"torus12", make_torus(12, 12, kLink), 37},
                                         Steps{"torus14", make_torus(14, 14, kLink), 49},
                                         Steps{"torus16", make_torus(16, 16, kLink), 64},
                                         Steps{"mesh4", make_mesh(4, 4, kLink), 8},
                                         Steps{"mesh8", make_mesh(8, 8, kLink), 32},
                                         Steps{"dgx2", make_dgx2(kLink, kLink), 15},
                                         Steps{"bigraph32", make_bigraph(4, 8, kLink, kLink), 31},
                                         Steps{"bigraph64", make_bigraph(4, 16, kLink, kLink), 63},
                                         Steps{"fat_tree64", make_fat_tree(8, 8, kLink), 63}),
                         [](const auto& info) { return info.param.name; });

struct Edge {
  VertexId parent;
  VertexId child;
  Step step;

  bool operator==(const Edge&) const = default;
};

std::vector<Edge> edges_of(const Tree& tree) {
  std::vector<Edge> edges;
  for (const TreeEdge& edge : tree.edges) {
    edges.push_back({edge.parent, edge.child, edge.step});
  }
  return edges;
}

/// ISCA'21 Fig. 3.
TEST(MultiTree, GrowsThePapersTreesOnA2x2Mesh) {
  const Forest forest = forest_of(make_mesh(2, 2, kLink));
  ASSERT_EQ(forest.step_count, 2U);
  EXPECT_EQ(edges_of(forest.trees[0]), (std::vector<Edge>{{0, 2, 1}, {0, 1, 1}, {2, 3, 2}}));
  EXPECT_EQ(edges_of(forest.trees[1]), (std::vector<Edge>{{1, 3, 1}, {1, 0, 1}, {3, 2, 2}}));
  EXPECT_EQ(edges_of(forest.trees[2]), (std::vector<Edge>{{2, 0, 1}, {2, 3, 1}, {0, 1, 2}}));
  EXPECT_EQ(edges_of(forest.trees[3]), (std::vector<Edge>{{3, 1, 1}, {3, 2, 1}, {1, 0, 2}}));
}

/// Every edge's way shares no link with other trees in its step, and leads from parent to child.
void expect_no_contention(const Topology& topology, const Forest& forest,
                          const std::vector<std::uint32_t>& units) {
  const std::size_t links = topology.links().size();
  std::vector<std::uint32_t> used((forest.step_count + 1) * links); // by step and link
  for (const Tree& tree : forest.trees) {
    for (const TreeEdge& edge : tree.edges) {
      ASSERT_LE(edge.step, forest.step_count);
      VertexId at = edge.parent;
      for (std::uint32_t i = 0; i < edge.route.count; ++i) {
        const LinkId link = forest.routes[edge.route.begin + i];
        ASSERT_EQ(topology.link(link).from, at);
        at = topology.link(link).to;
        ASSERT_LE(++used[edge.step * links + link], units[link]);
      }
      ASSERT_EQ(at, edge.child);
    }
  }
}

/// Every participant once; each parent was there in an earlier step.
void expect_spans(const Forest& forest, const std::vector<VertexId>& participants) {
  ASSERT_EQ(forest.trees.size(), participants.size());
  for (std::size_t rank = 0; rank < participants.size(); ++rank) {
    const Tree& tree = forest.trees[rank];
    ASSERT_EQ(tree.root, participants[rank]);
    std::map<VertexId, Step> joined{{tree.root, 0}};
    for (const TreeEdge& edge : tree.edges) {
      ASSERT_TRUE(joined.contains(edge.parent));
      ASSERT_LT(joined[edge.parent], edge.step);
      ASSERT_TRUE(joined.emplace(edge.child, edge.step).second);
    }
    for (const VertexId node : participants) {
      ASSERT_TRUE(joined.contains(node));
    }
    ASSERT_EQ(joined.size(), participants.size());
  }
}

TEST(MultiTree, TreesSpanAndLinksAreNotShared) {
  for (const Topology& topology :
       {make_torus(5, 3, kLink), make_mesh(3, 7, kLink), make_bigraph(3, 6, kLink, kLink),
        make_fat_tree(3, 5, kLink), make_star(6, kLink)}) {
    const Forest forest = forest_of(topology);
    expect_spans(forest, every_node(topology));
    expect_no_contention(topology, forest, std::vector<std::uint32_t>(topology.links().size(), 1));
  }
}

/// Two levels and as many hosts as a large job has: trees, links, and the least number of steps
/// with one link per host.
TEST(MultiTree, AThousandHostsOnAFatTree) {
  constexpr std::uint32_t kSide = test::kIsSanitized ? 16 : 32;
  constexpr std::uint32_t kNodes = kSide * kSide;
  const Topology topology = make_fat_tree(kSide, kSide, kLink);
  const Forest forest = forest_of(topology);
  expect_spans(forest, every_node(topology));
  expect_no_contention(topology, forest, std::vector<std::uint32_t>(topology.links().size(), 1));
  EXPECT_EQ(forest.step_count, kNodes - 1);
}

TEST(MultiTree, AnyNodesMayTakePart) {
  const std::vector<VertexId> corners{12, 0, 15, 3, 6};
  for (const Topology& topology : {make_torus(4, 4, kLink), make_dgx2(kLink, kLink)}) {
    const Forest forest = grow_forest(topology, corners);
    expect_spans(forest, corners);
    expect_no_contention(topology, forest, std::vector<std::uint32_t>(topology.links().size(), 1));
  }
}

/// §VII-B: two leaves of four nodes each. One cable of four times the rate between them is compared
/// with four cables of the simple rate.
TEST(MultiTree, AFastLinkCountsAsParallelOnes) {
  const auto two_leaves = [](std::uint32_t cables, LinkTraits between) {
    Topology topology({"a", "b", "c", "d", "e", "f", "g", "h"}, {"left", "right"});
    for (VertexId node = 0; node < 8; ++node) {
      topology.connect(node, 8 + node / 4, kLink);
    }
    for (std::uint32_t cable = 0; cable < cables; ++cable) {
      topology.connect(8, 9, between);
    }
    return topology;
  };
  const LinkTraits fast{4 * kLink.bits_per_second, kLink.latency_ns};
  const Topology one_fast = two_leaves(1, fast);
  const Forest forest = forest_of(one_fast);
  EXPECT_EQ(forest.step_count, 7U);
  EXPECT_EQ(forest_of(two_leaves(4, kLink)).step_count, 7U);
  EXPECT_GT(forest_of(two_leaves(1, kLink)).step_count, 7U);
  std::vector<std::uint32_t> units(one_fast.links().size(), 1);
  units[16] = units[17] = 4;
  expect_no_contention(one_fast, forest, units);
}

/// A node's one link bounds any all-gather: N-1 steps.
TEST(MultiTree, AStarOfAnySizeTakesNMinus1Steps) {
  for (const std::uint32_t nodes : {2U, 5U, 6U, 7U, 12U, 48U, 100U}) {
    EXPECT_EQ(forest_of(make_star(nodes, kLink)).step_count, nodes - 1);
  }
}

TEST(MultiTree, HeightsOnSwitchNetworks) {
  EXPECT_EQ(greatest_height(forest_of(make_dgx2(kLink, kLink))), 1U);
  EXPECT_EQ(greatest_height(forest_of(make_bigraph(4, 8, kLink, kLink))), 2U);
  EXPECT_EQ(greatest_height(forest_of(make_bigraph(4, 16, kLink, kLink))), 2U);
  EXPECT_EQ(greatest_height(forest_of(make_fat_tree(8, 8, kLink))), 1U);
}

TEST(MultiTree, LinksUsedByStepOnTori) {
  EXPECT_EQ(links_used(forest_of(make_torus(4, 4, kLink))),
            (std::vector<std::size_t>{64, 64, 48, 48, 16}));
  std::vector<std::size_t> eight(14, 256);
  eight.insert(eight.end(), {192, 192, 64});
  EXPECT_EQ(links_used(forest_of(make_torus(8, 8, kLink))), eight);
}

} // namespace
} // namespace weir::plan::plan_multitree_test
