// SPDX-License-Identifier: BSD-3-Clause

/// Trees for groups of hosts: what each must be, on random fabrics, and what is chosen where there
/// is a choice.

#include "placement/place.hpp"
#include "plan/generators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <gmock/gmock.h>
#include <random>
#include <set>

namespace weir::placement::fabric_placement_test {
namespace {

using testing::ElementsAre;

constexpr plan::LinkTraits kLink{.bits_per_second = 100'000'000'000, .latency_ns = 1000};

/// Three levels: pods of leaves and aggregation switches, and cores; each aggregation switch has
/// cores of its own.
plan::Topology fat_tree(std::uint32_t k) {
  const std::uint32_t half = k / 2;
  std::vector<std::string> nodes;
  std::vector<std::string> switches;
  for (std::uint32_t host = 0; host < k * half * half; ++host) {
    nodes.push_back("host" + std::to_string(host));
  }
  for (const char* kind : {"leaf", "agg"}) {
    for (std::uint32_t number = 0; number < k * half; ++number) {
      switches.push_back(kind + std::to_string(number));
    }
  }
  for (std::uint32_t number = 0; number < half * half; ++number) {
    switches.push_back("core" + std::to_string(number));
  }
  plan::Topology topology(nodes, switches);
  const auto at = [&](const std::string& kind, std::uint32_t number) {
    return topology.find(kind + std::to_string(number));
  };
  for (std::uint32_t host = 0; host < nodes.size(); ++host) {
    topology.connect(host, at("leaf", host / half), kLink);
  }
  for (std::uint32_t pod = 0; pod < k; ++pod) {
    for (std::uint32_t one = 0; one < half; ++one) {
      for (std::uint32_t other = 0; other < half; ++other) {
        topology.connect(at("leaf", pod * half + one), at("agg", pod * half + other), kLink);
        topology.connect(at("agg", pod * half + one), at("core", one * half + other), kLink);
      }
    }
  }
  return topology;
}

Usage empty(const Index& index) {
  Usage usage(index);
  std::ranges::fill(usage.room, Room{100, 1000, 100'000});
  return usage;
}

Request request_for(const Index& index, const std::vector<plan::VertexId>& hosts,
                    std::uint32_t trees) {
  Request request{.seats = {}, .trees = trees, .rate = 100e9, .frames_per_child = 16};
  for (const plan::VertexId host : hosts) {
    const plan::LinkId up = index.topology().outgoing(host).front();
    request.seats.push_back(
        {index.switch_at(index.topology().link(up).to), plan::Topology::reverse_of(up)});
  }
  return request;
}

/// What docs/protocol.md wants of a tree.
void expect_tree(const Index& index, const Request& request, const Placement& placement,
                 const Tree& tree) {
  const auto world = static_cast<std::uint32_t>(request.seats.size());
  ASSERT_FALSE(tree.switches.empty());
  EXPECT_EQ(tree.switches.front().parent, kNone);
  EXPECT_EQ(tree.switches.front().count, world);
  EXPECT_GE(tree.switches.front().children.size(), 2U);
  std::set<SwitchIndex> seen;
  std::vector<int> of_rank(world);
  for (const TreeSwitch& part : tree.switches) {
    EXPECT_TRUE(seen.insert(part.at).second) << "a switch is in it once";
    std::uint32_t next = part.first;
    for (const TreeChild& child : part.children) {
      EXPECT_EQ(child.first, next) << "consecutive ranges";
      next += child.count;
      if (child.is_rank()) {
        const std::uint32_t rank = placement.rank_at.at(child.first);
        EXPECT_EQ(request.seats[rank].at, part.at) << "behind this switch";
        EXPECT_EQ(request.seats[rank].down, child.down);
        ++of_rank[rank];
      } else {
        const auto below = std::ranges::find(tree.switches, child.below, &TreeSwitch::at);
        ASSERT_NE(below, tree.switches.end());
        EXPECT_EQ(below->parent, part.at);
        EXPECT_EQ(below->up, plan::Topology::reverse_of(child.down));
        EXPECT_EQ(index.topology().link(child.down).from, index.vertex_of(part.at));
        EXPECT_EQ(index.topology().link(child.down).to, index.vertex_of(child.below));
      }
    }
    EXPECT_EQ(next, part.first + part.count);
    EXPECT_TRUE(part.parent == kNone || part.count < world);
  }
  EXPECT_EQ(std::ranges::count(of_rank, 1), static_cast<std::ptrdiff_t>(world));
}

void expect_disjoint(const Placement& placement) {
  std::set<std::uint32_t> cables;
  for (const Tree& tree : placement.trees) {
    for (const TreeSwitch& part : tree.switches) {
      if (part.up != kNone) {
        EXPECT_TRUE(cables.insert(plan::cable_of(part.up)).second) << "two trees share a cable";
      }
    }
  }
}

TEST(Placement, TreesAreTreesAndShareNoCableOnRandomJobs) {
  const plan::Topology topology = fat_tree(4);
  const Index index(topology);
  Placer placer(index);
  std::mt19937 dice(1);
  for (int run = 0; run < 400; ++run) {
    Usage usage = empty(index);
    for (double& load : usage.load) {
      load = static_cast<double>(dice() % 4) * 25e9;
    }
    std::vector<plan::VertexId> hosts(topology.node_count());
    std::ranges::generate(hosts, [next = 0U]() mutable { return next++; });
    std::ranges::shuffle(hosts, dice);
    hosts.resize(2 + dice() % 15);
    const Request request = request_for(index, hosts, 1 + dice() % 4);
    const Answer answer = placer.place(request, usage);
    const auto* const placement = std::get_if<Placement>(&answer);
    ASSERT_NE(placement, nullptr) << run;
    for (const Tree& tree : placement->trees) {
      expect_tree(index, request, *placement, tree);
      EXPECT_DOUBLE_EQ(tree.rate, 100e9 / static_cast<double>(placement->trees.size()));
    }
    expect_disjoint(*placement);
    const Answer again = Placer(index).place(request, usage);
    EXPECT_EQ(std::get<Placement>(again).rank_at, placement->rank_at);
    EXPECT_EQ(shape_of(std::get<Placement>(again).trees[0]), shape_of(placement->trees[0]));
  }
}

TEST(Placement, TheRootIsTheOneWhoseBusiestLinkIsTheLeastBusy) {
  const plan::Topology topology = plan::make_spine_leaf({2, 2, 3, kLink, kLink});
  const Index index(topology);
  Placer placer(index);
  Usage usage = empty(index);
  const auto load = [&](const char* leaf, const char* spine, double bits) {
    for (plan::LinkId link = 0; link < topology.links().size(); ++link) {
      if (topology.name(topology.link(link).from) == leaf &&
          topology.name(topology.link(link).to) == spine) {
        usage.load[plan::cable_of(link)] = bits;
      }
    }
  };
  load("leaf0", "spine0", 60e9);
  load("leaf1", "spine1", 10e9);
  load("leaf0", "spine2", 20e9);
  const Request request = request_for(index, {0, 1, 2, 3}, 1);
  const auto root = [&] {
    const Answer answer = placer.place(request, usage);
    return topology.name(index.vertex_of(std::get<Placement>(answer).trees[0].switches[0].at));
  };
  EXPECT_EQ(root(), "spine1");
  usage.out[index.switch_at(topology.find("spine1"))] = 1;
  EXPECT_EQ(root(), "spine2");
  usage.room[index.switch_at(topology.find("spine2"))].frames = 31; // two children of 16
  EXPECT_EQ(root(), "spine0");
}

TEST(Placement, ARefusalSaysWhatIsShortAndWhere) {
  const plan::Topology topology = plan::make_spine_leaf({2, 2, 1, kLink, kLink});
  const Index index(topology);
  Placer placer(index);
  Usage usage = empty(index);
  const SwitchIndex spine = index.switch_at(topology.find("spine0"));
  const SwitchIndex leaf1 = index.switch_at(topology.find("leaf1"));
  Request request = request_for(index, {0, 1, 2}, 1);
  usage.room[spine].frames = 15; // too few even below another root, where it has one child
  Refusal refusal = std::get<Refusal>(placer.place(request, usage));
  EXPECT_EQ(refusal.lack, Lack::frames);
  EXPECT_EQ(refusal.where, spine);
  EXPECT_EQ(refusal.needs, 32U);
  EXPECT_EQ(refusal.free, 15U);
  usage.room[spine].frames = 32;
  usage.out[leaf1] = 1;
  refusal = std::get<Refusal>(placer.place(request, usage));
  EXPECT_EQ(refusal.lack, Lack::tree);
  EXPECT_EQ(refusal.where, leaf1);
  EXPECT_EQ(refusal.rank, 2U);
  usage.out[leaf1] = 0;
  request = request_for(index, {0, 2, 1}, 1);
  request.order = Order::given;
  refusal = std::get<Refusal>(placer.place(request, usage));
  EXPECT_EQ(refusal.lack, Lack::order);
  request.order = Order::any;
  EXPECT_THAT(std::get<Placement>(placer.place(request, usage)).position, ElementsAre(0, 2, 1));
}

TEST(Placement, TheTreesOfAJobShareTheRoomOfASwitch) {
  const plan::Topology topology = plan::make_spine_leaf({2, 2, 2, kLink, kLink});
  const Index index(topology);
  Placer placer(index);
  Usage usage = empty(index);
  usage.room[index.switch_at(topology.find("leaf0"))].rings = 1;
  Request request = request_for(index, {0, 1, 2, 3}, 2);
  EXPECT_EQ(std::get<Placement>(placer.place(request, usage)).trees.size(), 1U);
  request.least = 2;
  EXPECT_EQ(std::get<Refusal>(placer.place(request, usage)).lack, Lack::rings);
}

TEST(Placement, AReservedRateLeavesATenthOfEachLink) {
  const plan::Topology topology = plan::make_spine_leaf({2, 1, 1, kLink, kLink});
  const Index index(topology);
  Placer placer(index);
  Usage usage = empty(index);
  Request request = request_for(index, {0, 1}, 1);
  request.is_reserved = true;
  request.rate = 45e9;
  const Answer first = placer.place(request, usage);
  take(std::get<Placement>(first), request, usage);
  const Answer second = placer.place(request, usage);
  take(std::get<Placement>(second), request, usage);
  const Answer third = placer.place(request, usage);
  EXPECT_EQ(std::get<Refusal>(third).lack, Lack::bandwidth);
  give_back(std::get<Placement>(first), request, usage);
  EXPECT_TRUE(std::holds_alternative<Placement>(placer.place(request, usage)));
}

} // namespace
} // namespace weir::placement::fabric_placement_test
