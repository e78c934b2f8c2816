// SPDX-License-Identifier: BSD-3-Clause

/// Every algorithm's tables: they reduce everything exactly once, in any order of delivery, and use
/// links and interfaces as the papers say.

#include "plan/algorithms.hpp"
#include "plan/generators.hpp"
#include "plan/schedules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::plan::plan_schedule_test {
namespace {

constexpr LinkTraits kLink{128'000'000'000, 150};

/// How often each node's data is in a value.
using Counts = std::vector<std::uint32_t>;

void add(Counts& to, const Counts& more) {
  std::ranges::transform(to, more, to.begin(), std::plus());
}

/// The values of chunks, computed only from the rows' waits. A value sent is the node's own data
/// plus every reduce that this row or an earlier one waits for, or the gather that it waits for
/// instead.
class Values {
 public:
  Values(const Topology& topology, const Schedule& schedule)
      : topology_(topology), schedule_(schedule), sent_(schedule.messages.size()),
        awaited_(topology.node_count()) {
    std::vector<const Entry*> rows;
    for (const Entry& entry : schedule.entries) {
      rows.push_back(&entry);
    }
    std::ranges::stable_sort(rows, {}, &Entry::step);
    for (const Entry* row : rows) {
      send(*row);
    }
  }

  /// The value of `chunk` at `node` at the end, by step.
  Counts result(VertexId node, std::uint32_t chunk) const {
    std::vector<MessageId> arrivals;
    for (MessageId id = 0; id < schedule_.messages.size(); ++id) {
      if (schedule_.messages[id].to == node) {
        arrivals.push_back(id);
      }
    }
    std::ranges::stable_sort(arrivals, {},
                             [&](MessageId id) { return schedule_.messages[id].step; });
    return joined(node, chunk, arrivals);
  }

 private:
  void send(const Entry& row) {
    for (std::uint32_t i = 0; i < row.sends.count; ++i) {
      const MessageId id = row.sends.begin + i;
      const Message& message = schedule_.messages[id];
      std::vector<MessageId>& waits = awaited_[message.from];
      if (i == 0) {
        waits.insert(waits.end(), schedule_.waits_of(row).begin(), schedule_.waits_of(row).end());
        std::ranges::stable_sort(waits, {},
                                 [&](MessageId w) { return schedule_.messages[w].step; });
      }
      for (std::uint32_t chunk = 0; chunk < message.chunks.count; ++chunk) {
        sent_[id].push_back(joined(message.from, message.chunks.first + chunk, waits));
      }
    }
  }

  Counts joined(VertexId node, std::uint32_t chunk, std::span<const MessageId> arrivals) const {
    Counts value(topology_.node_count());
    value[node] = 1;
    for (const MessageId id : arrivals) {
      const Message& message = schedule_.messages[id];
      if (chunk < message.chunks.first || chunk >= message.chunks.first + message.chunks.count) {
        continue;
      }
      const Counts& sent = sent_[id].at(chunk - message.chunks.first);
      if (message.operation == Operation::gather) {
        value = sent;
      } else {
        add(value, sent);
      }
    }
    return value;
  }

  const Topology& topology_;
  const Schedule& schedule_;
  std::vector<std::vector<Counts>> sent_;       // by message and chunk
  std::vector<std::vector<MessageId>> awaited_; // by node, by its rows so far
};

/// Whether every table can be processed in order, so that all messages that a node waits for come.
bool tables_finish(const Topology& topology, const Schedule& schedule) {
  std::vector<bool> has_come(schedule.messages.size());
  std::vector<std::size_t> next(topology.node_count());
  bool moved = true;
  while (moved) {
    moved = false;
    for (VertexId node = 0; node < topology.node_count(); ++node) {
      const auto table = schedule.table(node);
      if (next[node] == table.size() ||
          !std::ranges::all_of(schedule.waits_of(table[next[node]]),
                               [&](MessageId id) { return has_come[id]; })) {
        continue;
      }
      const Slice sends = table[next[node]++].sends;
      std::fill_n(has_come.begin() + sends.begin, sends.count, true);
      moved = true;
    }
  }
  return std::ranges::all_of(has_come, std::identity());
}

/// The largest number of messages that share a link (or leave, or enter a node) in a step.
std::uint32_t
greatest_share(const Schedule& schedule,
               const std::function<std::vector<std::uint32_t>(const Message&)>& uses) {
  std::map<std::pair<Step, std::uint32_t>, std::uint32_t> used;
  std::uint32_t greatest = 0;
  for (const Message& message : schedule.messages) {
    for (const std::uint32_t place : uses(message)) {
      greatest = std::max(greatest, ++used[std::pair(message.step, place)]);
    }
  }
  return greatest;
}

std::uint32_t most_on_a_link(const Schedule& schedule) {
  return greatest_share(schedule, [&](const Message& message) {
    const auto route = schedule.route_of(message);
    return std::vector<std::uint32_t>(route.begin(), route.end());
  });
}

struct Case {
  std::string name;
  Topology topology;
  Algorithm algorithm;
};

void PrintTo(const Case& row, std::ostream* out) {
  *out << row.name;
}

std::vector<Case> cases() {
  const std::vector<std::pair<std::string, Topology>> topologies{
      {"torus4x4", make_torus(4, 4, kLink)},
      {"torus3x5", make_torus(3, 5, kLink)},
      {"torus2x2", make_torus(2, 2, kLink)},
      {"mesh4x4", make_mesh(4, 4, kLink)},
      {"mesh2x3", make_mesh(2, 3, kLink)},
      {"dgx2", make_dgx2(kLink, kLink)},
      {"bigraph4x8", make_bigraph(4, 8, kLink, kLink)},
      {"fat_tree4x4", make_fat_tree(4, 4, kLink)},
      {"star7", make_star(7, kLink)},
      {"star2", make_star(2, kLink)}};
  std::vector<Case> all;
  for (const auto& [name, topology] : topologies) {
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::ring_across, Algorithm::double_binary_tree,
          Algorithm::ring_2d, Algorithm::hdrm, Algorithm::multitree}) {
      if (why_not(algorithm, topology, every_node(topology)).empty()) {
        std::string label = name + "_" + std::string(name_of(algorithm));
        std::ranges::replace(label, '-', '_');
        all.push_back({label, topology, algorithm});
      }
    }
  }
  return all;
}

class EveryPlan : public testing::TestWithParam<Case> {};

TEST_P(EveryPlan, ReducesEverythingOnceEverywhere) {
  const Topology& topology = GetParam().topology;
  const Plan plan = make_plan(topology, GetParam().algorithm);
  const Values values(topology, plan.schedule);
  const Counts once(topology.node_count(), 1);
  for (VertexId node = 0; node < topology.node_count(); ++node) {
    for (std::uint32_t chunk = 0; chunk < plan.schedule.chunk_count; ++chunk) {
      ASSERT_EQ(values.result(node, chunk), once) << "node " << node << ", chunk " << chunk;
    }
  }
}

TEST_P(EveryPlan, RunsToItsEndInTheOrderOfTheTables) {
  const Topology& topology = GetParam().topology;
  EXPECT_TRUE(tables_finish(topology, make_plan(topology, GetParam().algorithm).schedule));
}

TEST_P(EveryPlan, RoutesLeadFromSenderToReceiver) {
  const Topology& topology = GetParam().topology;
  const Schedule schedule = make_plan(topology, GetParam().algorithm).schedule;
  for (const Message& message : schedule.messages) {
    VertexId at = message.from;
    for (const LinkId link : schedule.route_of(message)) {
      ASSERT_EQ(topology.link(link).from, at);
      at = topology.link(link).to;
    }
    ASSERT_EQ(at, message.to);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, EveryPlan, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

Schedule schedule_on(const Topology& topology, Algorithm algorithm) {
  return make_plan(topology, algorithm).schedule;
}

TEST(Schedules, NoLinkIsSharedInAStepWhereThePapersSaySo) {
  EXPECT_EQ(most_on_a_link(schedule_on(make_torus(8, 8, kLink), Algorithm::ring)), 1U);
  EXPECT_EQ(most_on_a_link(schedule_on(make_torus(8, 8, kLink), Algorithm::ring_2d)), 1U);
  EXPECT_EQ(most_on_a_link(schedule_on(make_torus(8, 8, kLink), Algorithm::multitree)), 1U);
  EXPECT_EQ(most_on_a_link(schedule_on(make_bigraph(4, 8, kLink, kLink), Algorithm::hdrm)), 1U);
  EXPECT_EQ(most_on_a_link(schedule_on(make_bigraph(4, 16, kLink, kLink), Algorithm::hdrm)), 1U);
  EXPECT_EQ(most_on_a_link(schedule_on(make_bigraph(4, 16, kLink, kLink), Algorithm::ring_across)),
            1U);
  EXPECT_EQ(most_on_a_link(schedule_on(make_fat_tree(8, 8, kLink), Algorithm::ring)), 1U);
  EXPECT_GT(most_on_a_link(schedule_on(make_torus(8, 8, kLink), Algorithm::double_binary_tree)),
            1U);
}

/// ISCA'21 §I: a ring uses a quarter of a 4x4 torus's links.
TEST(Schedules, RingTakesNMinus1StepsAPhaseAndAQuarterOfATorus) {
  const Topology torus = make_torus(4, 4, kLink);
  const Schedule schedule = schedule_on(torus, Algorithm::ring);
  EXPECT_EQ(schedule.step_count, 30U);
  std::set<LinkId> used;
  for (const Message& message : schedule.messages) {
    ASSERT_EQ(message.route.count, 1U);
    used.insert(schedule.route_of(message)[0]);
  }
  EXPECT_EQ(4 * used.size(), torus.links().size());
}

TEST(Schedules, RingOrdersOfThePapersNetworks) {
  const Topology dgx2 = make_dgx2(kLink, kLink);
  const auto crossing = crossing_order(dgx2, every_node(dgx2));
  EXPECT_EQ(std::vector(crossing.begin(), crossing.begin() + 4),
            (std::vector<VertexId>{0, 8, 1, 9}));
  const Topology tree = make_fat_tree(8, 8, kLink);
  EXPECT_EQ(crossing_order(tree, every_node(tree))[9], 9U); // 1 + 8·1
  EXPECT_EQ(neighbourly_order(tree, every_node(tree)), every_node(tree));
}

TEST(Schedules, ABiGraphsRingChangesSidesAtEveryHop) {
  for (const BiGraph shape : {BiGraph{4, 8}, BiGraph{4, 16}}) {
    const Topology bigraph = make_bigraph(shape.nodes_per_switch, shape.switches, kLink, kLink);
    const std::vector<VertexId> order = crossing_order(bigraph, every_node(bigraph));
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), bigraph.node_count());
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      const std::uint32_t at = order[rank] / shape.nodes_per_switch;
      EXPECT_EQ(at < shape.switches / 2, rank % 2 == 0);
    }
    EXPECT_EQ(most_on_a_link(ring_schedule(bigraph, order)), 1U);
  }
}

/// With an odd number of ranks one of them is an inner vertex of both trees.
TEST(Schedules, TwoTreesNeverSendOrReceiveTwiceInAStep) {
  for (const std::uint32_t nodes : {2U, 6U, 8U, 14U, 16U, 64U}) {
    const Schedule schedule = schedule_on(make_star(nodes, kLink), Algorithm::double_binary_tree);
    EXPECT_EQ(greatest_share(schedule, [](const Message& m) { return std::vector{m.from}; }), 1U);
    EXPECT_EQ(greatest_share(schedule, [](const Message& m) { return std::vector{m.to}; }), 1U);
  }
}

/// Each rank is an inner vertex in one of the trees and a leaf in the other.
TEST(Schedules, TwoTreesShareTheWork) {
  const Schedule schedule = schedule_on(make_star(16, kLink), Algorithm::double_binary_tree);
  std::map<VertexId, std::set<bool>> inner_in; // node → trees in which it receives reduces
  for (const Message& message : schedule.messages) {
    if (message.operation == Operation::reduce) {
      inner_in[message.to].insert(message.flow >= 8);
    }
  }
  for (const auto& [node, trees] : inner_in) {
    EXPECT_TRUE(trees.size() == 1 || node == 0 || node == 15) << node;
  }
}

/// MultiTree §V: D(k-1)/k over each link.
TEST(Schedules, Ring2DLoadsEveryLinkEvenly) {
  const Topology torus = make_torus(4, 4, kLink);
  const Schedule schedule = schedule_on(torus, Algorithm::ring_2d);
  std::map<LinkId, std::uint32_t> chunks;
  for (const Message& message : schedule.messages) {
    for (const LinkId link : schedule.route_of(message)) {
      chunks[link] += message.chunks.count;
    }
  }
  EXPECT_EQ(chunks.size(), torus.links().size());
  for (const auto& [link, count] : chunks) {
    EXPECT_EQ(count * 4, schedule.chunk_count * 3);
  }
}

TEST(Schedules, HdrmPartnersSitOnOppositeSides) {
  for (const BiGraph shape : {BiGraph{4, 8}, BiGraph{4, 16}, BiGraph{8, 4}}) {
    const std::vector<VertexId> node_of_rank = hdrm_placement(shape);
    EXPECT_EQ(std::set(node_of_rank.begin(), node_of_rank.end()).size(), node_of_rank.size());
    const auto is_upper = [&](std::uint32_t rank) {
      return node_of_rank[rank] / shape.nodes_per_switch < shape.switches / 2;
    };
    for (std::uint32_t rank = 0; rank < node_of_rank.size(); ++rank) {
      for (std::uint32_t distance = 1; distance < node_of_rank.size(); distance *= 2) {
        ASSERT_NE(is_upper(rank), is_upper(rank ^ distance)) << rank << ' ' << distance;
      }
    }
  }
}

struct Row {
  Operation operation;
  FlowId flow;
  VertexId parent;
  std::vector<VertexId> children;
  Step step;

  bool operator==(const Row&) const = default;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << static_cast<int>(row.operation) << " flow " << row.flow << " parent " << row.parent
       << " step " << row.step << " children";
  for (const VertexId child : row.children) {
    *out << ' ' << child;
  }
}

std::vector<Row> rows_of(const Schedule& schedule, VertexId node) {
  std::vector<Row> rows;
  for (const Entry& entry : schedule.table(node)) {
    rows.push_back(
        {entry.operation, entry.flow, entry.parent, children_of(schedule, entry), entry.step});
  }
  return rows;
}

/// ISCA'21 Fig. 5: the schedule table of accelerator 0 on the 2x2 mesh.
TEST(Schedules, TheTableOfThePapersFigure5) {
  const Schedule schedule = schedule_on(make_mesh(2, 2, kLink), Algorithm::multitree);
  const auto reduce = Operation::reduce;
  const auto gather = Operation::gather;
  EXPECT_EQ(rows_of(schedule, 0), (std::vector<Row>{{reduce, 3, 1, {}, 1},
                                                    {reduce, 1, 1, {}, 2},
                                                    {reduce, 2, 2, {1}, 2},
                                                    {gather, 0, kNone, {2, 1}, 3},
                                                    {gather, 2, 2, {1}, 4}}));
}

/// ISCA'21 §V: a table has at most 2N entries, without nops.
TEST(Schedules, TablesHaveAtMost2NRows) {
  const Topology torus = make_torus(8, 8, kLink);
  const Schedule schedule = schedule_on(torus, Algorithm::multitree);
  for (VertexId node = 0; node < torus.node_count(); ++node) {
    const auto rows = schedule.table(node);
    EXPECT_LE(std::ranges::count_if(
                  rows, [](const Entry& row) { return row.operation != Operation::nop; }),
              128);
  }
}

/// §IV-A: a node with nothing to send in a step waits for that step.
TEST(Schedules, EveryStepBeforeANodesLastHasARow) {
  const Topology mesh = make_mesh(4, 4, kLink);
  const Schedule schedule = schedule_on(mesh, Algorithm::multitree);
  std::size_t nops = 0;
  for (VertexId node = 0; node < mesh.node_count(); ++node) {
    Step next = 1;
    for (const Entry& row : schedule.table(node)) {
      ASSERT_TRUE(row.step == next || row.step + 1 == next);
      next = row.step + 1;
      nops += row.operation == Operation::nop ? 1 : 0;
      EXPECT_EQ(row.sends.count == 0, row.operation == Operation::nop);
    }
  }
  EXPECT_GT(nops, 0U);
}

TEST(Schedules, InterfacesSendAsManyMessagesAtOnceAsTheyHaveLinks) {
  EXPECT_EQ(schedule_on(make_torus(4, 4, kLink), Algorithm::multitree).channels, 4U);
  EXPECT_EQ(schedule_on(make_dgx2(kLink, kLink), Algorithm::multitree).channels, 1U);
  EXPECT_EQ(schedule_on(make_torus(4, 4, kLink), Algorithm::ring).channels, 1U);
}

TEST(Plans, SomeNodesMayTakePart) {
  const Topology torus = make_torus(4, 4, kLink);
  const std::vector<VertexId> some{9, 2, 14, 7, 0};
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::double_binary_tree, Algorithm::multitree}) {
    const Plan plan = make_plan(torus, algorithm, some);
    const Values values(torus, plan.schedule);
    Counts once(torus.node_count());
    for (const VertexId node : some) {
      once[node] = 1;
    }
    for (const VertexId node : some) {
      for (std::uint32_t chunk = 0; chunk < plan.schedule.chunk_count; ++chunk) {
        ASSERT_EQ(values.result(node, chunk), once) << name_of(algorithm);
      }
    }
    EXPECT_TRUE(plan.schedule.table(1).empty());
  }
}

std::string complaint(const std::function<void()>& call) {
  try {
    call();
  } catch (const PlanError& error) {
    return error.what();
  }
  return "";
}

TEST(Plans, SayWhyTheyCannotBeMade) {
  const Topology star = make_star(4, kLink);
  const auto plan = [&](Algorithm algorithm, std::vector<VertexId> nodes) {
    return complaint([&] { make_plan(star, algorithm, nodes); });
  };
  EXPECT_EQ(plan(Algorithm::ring_2d, {0, 1, 2, 3}), "2d-ring needs every node of a torus or mesh");
  EXPECT_EQ(plan(Algorithm::hdrm, {0, 1, 2, 3}),
            "hdrm needs every node of a BiGraph, and powers of two of nodes and switches");
  EXPECT_EQ(plan(Algorithm::ring, {0}), "1 nodes take part; allowed: two at least");
  const Topology large = make_star(8193, kLink);
  EXPECT_EQ(complaint([&] { make_plan(large, Algorithm::ring); }),
            "8193 nodes take part; allowed: 8192 at most, as tables grow with their square");
  EXPECT_EQ(plan(Algorithm::ring, {0, 1, 0}), "n0 takes part twice; allowed: each node once");
  EXPECT_EQ(plan(Algorithm::ring, {0, 4}), "vertex 4 takes part; allowed: nodes, 0 to 3");
}

TEST(Topologies, SayWhatIsWrongWithThem) {
  EXPECT_EQ(complaint([] {
              Topology({"a", "b", "a"}, {});
            }),
            "the name a stands for two nodes or switches; allowed: names that differ");
  EXPECT_EQ(complaint([] { Topology({}, {"s"}); }),
            "the topology has no node; allowed: one at least");
  EXPECT_EQ(complaint([] {
              Topology({"a", "b"}, {}).connect(0, 1, {0, 1});
            }),
            "the link between a and b has a rate of 0; allowed: at least 1 bit/s (leave out a link "
            "that is down)");
  EXPECT_EQ(complaint([] { make_torus(1, 4, kLink); }),
            "rows of a grid: found 1; allowed: 2 to 65536");
  EXPECT_EQ(complaint([] { make_bigraph(2, 3, kLink, kLink); }),
            "switches: found 3; allowed: an even number");
}

} // namespace
} // namespace weir::plan::plan_schedule_test
