// SPDX-License-Identifier: BSD-3-Clause

/// Rings over trees of switches: docs/planner.md, "Weir switches".

#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/generators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace weir::plan::plan_fabric_test {
namespace {

constexpr LinkTraits kLink{25'000'000'000, 600};

FabricPlan fabric_of(const Topology& topology, std::uint32_t most_rings = 64) {
  return plan_fabric(topology, every_node(topology), most_rings);
}

const FabricSwitch& switch_named(const Topology& topology, const FabricRing& ring,
                                 std::string_view name) {
  return *std::ranges::find(ring.switches, topology.find(name), &FabricSwitch::vertex);
}

/// Each child's ranks follow those of the child before, the switch covers them all, and a switch
/// below has the same range in its own entry.
void expect_contiguous(const FabricRing& ring) {
  for (const FabricSwitch& one : ring.switches) {
    std::uint32_t next = one.first_rank;
    for (const FabricChild& child : one.children) {
      ASSERT_EQ(child.first_rank, next);
      next += child.rank_count;
      const auto below = std::ranges::find(ring.switches, child.vertex, &FabricSwitch::vertex);
      if (below == ring.switches.end()) {
        ASSERT_EQ(child.rank_count, 1U);
        ASSERT_EQ(ring.members[child.first_rank], child.vertex);
      } else {
        ASSERT_EQ(below->parent, one.vertex);
        ASSERT_EQ(below->up, Topology::reverse_of(child.down));
        ASSERT_EQ(below->first_rank, child.first_rank);
        ASSERT_EQ(below->rank_count, child.rank_count);
      }
    }
    ASSERT_EQ(next, one.first_rank + one.rank_count);
  }
}

/// Cables between switches.
std::set<LinkId> cables_of(const FabricRing& ring) {
  std::set<LinkId> cables;
  for (const FabricSwitch& one : ring.switches) {
    if (one.up != kNone) {
      cables.insert(one.up / 2);
    }
  }
  return cables;
}

TEST(Fabric, AStarHasOneRingOnOneSwitch) {
  const Topology star = make_star(5, kLink);
  const FabricPlan plan = fabric_of(star);
  ASSERT_EQ(plan.rings.size(), 1U);
  ASSERT_EQ(plan.rings[0].switches.size(), 1U);
  EXPECT_EQ(plan.rings[0].members, every_node(star));
  EXPECT_EQ(plan.rings[0].switches[0].parent, kNone);
  EXPECT_EQ(plan.rings[0].switches[0].children.size(), 5U);
}

TEST(Fabric, EachSpineRootsARingOfItsOwn) {
  const Topology topology = make_spine_leaf({4, 3, 2, kLink, kLink});
  const FabricPlan plan = fabric_of(topology);
  ASSERT_EQ(plan.rings.size(), 2U);
  for (std::uint32_t spine = 0; spine < 2; ++spine) {
    const FabricRing& ring = plan.rings[spine];
    expect_contiguous(ring);
    EXPECT_EQ(topology.name(ring.switches[0].vertex), "spine" + std::to_string(spine));
    EXPECT_EQ(ring.switches[0].children.size(), 4U);
    const FabricSwitch& leaf = switch_named(topology, ring, "leaf2");
    EXPECT_EQ(leaf.first_rank, 6U);
    EXPECT_EQ(leaf.rank_count, 3U);
    EXPECT_EQ(ring.members, every_node(topology));
  }
}

TEST(Fabric, RingsShareNoCableBetweenSwitches) {
  struct Case {
    Topology topology;
    std::size_t rings;
  };

  // h upper and h lower switches have h*h cables, and a tree takes 2h-1 of them.
  for (const auto& [topology, rings] :
       {Case{make_bigraph(2, 4, kLink, kLink), 1}, Case{make_bigraph(2, 8, kLink, kLink), 2},
        Case{make_bigraph(4, 16, kLink, kLink), 4}, Case{make_bigraph(2, 32, kLink, kLink), 8},
        Case{make_fat_tree(4, 4, kLink), 4}, Case{make_dgx2(kLink, kLink), 8}}) {
    const FabricPlan plan = fabric_of(topology);
    EXPECT_EQ(plan.rings.size(), rings);
    std::set<LinkId> taken;
    for (const FabricRing& ring : plan.rings) {
      expect_contiguous(ring);
      EXPECT_EQ(std::set(ring.members.begin(), ring.members.end()).size(), topology.node_count());
      for (const LinkId cable : cables_of(ring)) {
        EXPECT_TRUE(taken.insert(cable).second);
      }
    }
  }
}

TEST(Fabric, NoMoreRingsThanAsked) {
  EXPECT_EQ(fabric_of(make_fat_tree(4, 4, kLink), 3).rings.size(), 3U);
  EXPECT_EQ(fabric_of(make_bigraph(2, 16, kLink, kLink), 3).rings.size(), 3U);
}

/// One ring of a BiGraph is as shallow as possible: a root, the other side, and the root's own
/// side.
TEST(Fabric, OneRingIsTheShallowest) {
  const FabricPlan plan = fabric_of(make_bigraph(2, 8, kLink, kLink), 1);
  ASSERT_EQ(plan.rings.size(), 1U);
  EXPECT_EQ(plan.rings[0].switches.front().children.size(), 2U + 4U);
}

/// Core, two aggregation switches, two racks each: ranks are numbered depth first through three
/// levels.
TEST(Fabric, DeepTreesCoverRanksDepthFirst) {
  Topology topology({"a", "b", "c", "d", "e"}, {"r0", "r1", "r2", "r3", "g0", "g1", "core"});
  const auto join = [&](std::string_view up, std::string_view down) {
    topology.connect(topology.find(down), topology.find(up), kLink);
  };
  join("core", "g0");
  join("core", "g1");
  join("g0", "r2");
  join("g0", "r0");
  join("g1", "r1");
  join("g1", "r3");
  join("r0", "a");
  join("r1", "b");
  join("r2", "c");
  join("r3", "d");
  join("r3", "e");
  const FabricPlan plan = fabric_of(topology);
  ASSERT_EQ(plan.rings.size(), 1U);
  const FabricRing& ring = plan.rings[0];
  expect_contiguous(ring);
  EXPECT_EQ(ring.members, (std::vector<VertexId>{2, 0, 1, 3, 4})); // c a | b d e
  EXPECT_EQ(topology.name(ring.switches[0].vertex), "core");
  EXPECT_EQ(switch_named(topology, ring, "g1").first_rank, 2U);
  EXPECT_EQ(switch_named(topology, ring, "g1").rank_count, 3U);
}

TEST(Fabric, ThoseWhoTakeNoPartAreLeftOutWithTheirSwitches) {
  const Topology topology = make_spine_leaf({4, 3, 2, kLink, kLink});
  const FabricPlan plan = plan_fabric(topology, std::vector<VertexId>{0, 2, 10}, 64);
  ASSERT_EQ(plan.rings.size(), 2U);
  EXPECT_EQ(plan.rings[0].members, (std::vector<VertexId>{0, 2, 10}));
  EXPECT_EQ(plan.rings[0].switches.size(), 3U); // a spine, leaf0, leaf3
}

std::string complaint(const Topology& topology) {
  try {
    fabric_of(topology);
  } catch (const PlanError& error) {
    return error.what();
  }
  return "";
}

TEST(Fabric, SaysWhereNoTreeCanBe) {
  EXPECT_EQ(
      complaint(make_torus(2, 2, kLink)),
      "n0 is on no switch; allowed: participants that have a link to a switch, as nobody else "
      "adds up for them");
  Topology islands({"a", "b"}, {"s", "t"});
  islands.connect(0, 2, kLink);
  islands.connect(1, 3, kLink);
  EXPECT_EQ(complaint(islands), "no tree of switches reaches every participant; allowed: switches "
                                "that are joined to each other");
}

} // namespace
} // namespace weir::plan::plan_fabric_test
