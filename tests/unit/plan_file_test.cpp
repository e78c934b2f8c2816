// SPDX-License-Identifier: BSD-3-Clause

/// Topologies and plans as text.

#include "plan/algorithms.hpp"
#include "plan/drawing.hpp"
#include "plan/fabric.hpp"
#include "plan/generators.hpp"
#include "plan/host_list.hpp"
#include "plan/node_names.hpp"
#include "plan/plan_file.hpp"
#include "plan/topology_file.hpp"
#include "yaml/error.hpp"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

namespace weir::plan::plan_file_test {
namespace {

TEST(Names, Expand) {
  EXPECT_EQ(expand_names("n[8-10]", 8), (std::vector<std::string>{"n8", "n9", "n10"}));
  EXPECT_EQ(expand_names("rack[2-2]/a", 8), std::vector<std::string>{"rack2/a"});
  EXPECT_EQ(expand_names("alone", 8), std::vector<std::string>{"alone"});
  for (const char* pattern :
       {"n[3-1]", "n[1-", "n[1]", "n]1-2[", "n[0-8]", "n[a-b]", "n[0-1][0-1]", "n-1[2]", "n[-]"}) {
    EXPECT_EQ(expand_names(pattern, 8), std::nullopt) << pattern;
  }
}

/// The expected names are those of `scontrol show hostnames` of Slurm 22.05.8.
TEST(Names, OfSchedulersExpand) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_in("a[1-2,7],rack[0-1]n[08-09],login", 8),
            (Names{"a1", "a2", "a7", "rack0n08", "rack0n09", "rack1n08", "rack1n09", "login"}));
  EXPECT_EQ(names_in("n[9-11]", 8), (Names{"n9", "n10", "n11"}));
  EXPECT_EQ(names_in("n[09-11]", 8), (Names{"n09", "n10", "n11"}));
  EXPECT_EQ(names_in("n[001-003,10]", 8), (Names{"n001", "n002", "n003", "n10"}));
  EXPECT_EQ(names_in("r[0-1]n[2,08-9]", 8),
            (Names{"r0n2", "r0n08", "r0n09", "r1n2", "r1n08", "r1n09"}));
}

TEST(Names, OfSchedulersAreThereOnce) {
  EXPECT_EQ(names_in("n[1,1,2],n1", 4), (std::vector<std::string>{"n1", "n2"}));
}

/// So that what is short to write takes neither long nor much.
TEST(Names, OfSchedulersCountAsOftenAsTheyAreWritten) {
  EXPECT_EQ(names_in("n[0-3],n[0-3]", 7), std::nullopt);
  EXPECT_EQ(names_in("n,n,n", 2), std::nullopt);
  EXPECT_EQ(names_in("n,n,n", 3), (std::vector<std::string>{"n"}));
}

TEST(Names, OfSchedulersHaveSoManyBytes) {
  const std::string longest(255, 'a');
  EXPECT_EQ(names_in(longest, 1), std::vector<std::string>{longest});
  EXPECT_EQ(names_in(longest + "a", 1), std::nullopt);
  EXPECT_EQ(names_in("[0-1]" + longest, 2), std::nullopt);
  EXPECT_EQ(names_in(longest + "[0-1]", 2), std::nullopt);
  std::string list = "a";
  while (list.size() + 2 <= (64U << 10)) {
    list += ",a";
  }
  EXPECT_EQ(names_in(list, list.size()), std::vector<std::string>{"a"});
  EXPECT_EQ(names_in(list + ",a", list.size()), std::nullopt);
}

TEST(Names, OfSchedulersAreRefusedWhereTheyMakeNoSense) {
  std::string deep = "n";
  for (int brackets = 0; brackets < 9; ++brackets) {
    deep += "[0]";
  }
  for (const std::string& list :
       {std::string("n[5-3]"), std::string("a,"), std::string(",a"), std::string("a]"),
        std::string("n[1-2"), std::string("n[]"), std::string("n[1-2,]"), std::string("n[a-b]"),
        std::string("n[0-8]"), std::string("n[0-2][0-2]"), std::string("n[0-5],m[0-5]"),
        std::string("n[[1]]"), std::string("n[-1]"), std::string("n[1-2-3]"), std::string(),
        std::string("n[0-18446744073709551615]"), deep}) {
    EXPECT_EQ(names_in(list, 8), std::nullopt) << list;
  }
}

constexpr const char* kSmall = R"(nodes: [a, "b[0-1]"]
switches: [s, t]
links:
  - {between: [a, s], rate: 25Gbit/s, latency: 600ns, ports: [eth0, p3]}
  - {between: ["b[0-1]", t], rate: 25Gbit/s, latency: 600ns}
  - {between: [s, t], rate: 100Gbit/s, latency: 1us, count: 2}
)";

TEST(TopologyFile, ReadsNodesSwitchesAndLinks) {
  const Topology topology = parse_topology(kSmall, "small.yaml");
  EXPECT_EQ(topology.node_count(), 3U);
  EXPECT_EQ(topology.switch_count(), 2U);
  ASSERT_EQ(topology.links().size(), 10U);
  EXPECT_EQ(topology.name(topology.link(0).from), "a");
  EXPECT_EQ(topology.name(topology.link(0).to), "s");
  EXPECT_EQ(topology.port(0), "eth0");
  EXPECT_EQ(topology.port(1), "p3");
  EXPECT_EQ(topology.port(2), "");
  EXPECT_EQ(topology.link(8).traits, (LinkTraits{100'000'000'000, 1000}));
}

TEST(TopologyFile, ReadsEveryGenerator) {
  struct Case {
    const char* yaml;
    std::uint32_t nodes;
    std::uint32_t switches;
    std::size_t cables;
  };

  for (const Case& one :
       {Case{"{kind: torus, rows: 3, columns: 4, rate: 1Gbit/s, latency: 1ns}", 12, 0, 24},
        Case{"{kind: mesh, rows: 3, columns: 4, rate: 1Gbit/s, latency: 1ns}", 12, 0, 17},
        Case{"{kind: fat-tree, leaves: 3, nodes_per_leaf: 4, rate: 1Gbit/s, latency: 1ns}", 12, 7,
             24},
        Case{"{kind: spine-leaf, leaves: 3, nodes_per_leaf: 4, spines: 2, rate: 1Gbit/s, latency: "
             "1ns, uplink_rate: 2Gbit/s, uplink_latency: 5ns}",
             12, 5, 18},
        Case{"{kind: bigraph, nodes_per_switch: 2, switches: 6, rate: 1Gbit/s, latency: 1ns}", 12,
             6, 21},
        Case{"{kind: dgx2, rate: 1Gbit/s, latency: 1ns}", 16, 2, 24},
        Case{"{kind: star, nodes: 9, rate: 1Gbit/s, latency: 1ns}", 9, 1, 9}}) {
    const Topology topology = parse_topology(std::string("generator: ") + one.yaml, "g.yaml");
    EXPECT_EQ(topology.node_count(), one.nodes) << one.yaml;
    EXPECT_EQ(topology.switch_count(), one.switches) << one.yaml;
    EXPECT_EQ(topology.links().size(), 2 * one.cables) << one.yaml;
  }
  const Topology racks = parse_topology(
      "generator: {kind: spine-leaf, leaves: 3, nodes_per_leaf: 4, spines: 2, rate: 1Gbit/s, "
      "latency: 1ns, uplink_rate: 2Gbit/s, uplink_latency: 5ns}",
      "g.yaml");
  EXPECT_EQ(racks.links().front().traits, (LinkTraits{1'000'000'000, 1}));
  EXPECT_EQ(racks.links().back().traits, (LinkTraits{2'000'000'000, 5}));
}

struct Mistake {
  std::string name;
  std::string yaml;
  std::string complaint;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.name;
}

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreToldInWords) {
  try {
    parse_topology(GetParam().yaml, "t.yaml");
    FAIL() << "accepted";
  } catch (const yaml::Error& error) {
    EXPECT_EQ(error.what(), GetParam().complaint);
  }
}

INSTANTIATE_TEST_SUITE_P(
    TopologyFile, Mistakes,
    testing::Values(
        Mistake{"disconnected",
                "nodes: [a, b]\nswitches: [s]\nlinks:\n  - {between: [a, s], rate: 1Gbit/s, "
                "latency: 1ns}\n",
                "t.yaml:1: (document): found no way from \"a\" to \"b\"; allowed: links by which "
                "every node and switch reaches every other"},
        Mistake{"rate_of_0",
                "nodes: [a, b]\nlinks:\n  - between: [a, b]\n    rate: 0Gbit/s\n    latency: 1ns\n",
                "t.yaml:4: links[0].rate: found \"0Gbit/s\"; allowed: a rate of at least 1 bit/s, "
                "such as 100Gbit/s or 12.5GB/s"},
        Mistake{"node_twice", "nodes:\n  - a\n  - b\n  - a\nlinks: []\n",
                "t.yaml:4: nodes[2]: found \"a\" a second time (first on line 2); allowed: each "
                "name once among nodes and switches"},
        Mistake{
            "switch_like_a_node", "nodes: [\"n[0-3]\"]\nswitches: [n2]\nlinks: []\n",
            "t.yaml:2: switches[0]: found \"n2\" a second time (first on line 1); allowed: each "
            "name once among nodes and switches"},
        Mistake{"unknown_key", "nodes: [a, b]\nlinks:\n  - {between: [a, b], speed: 1Gbit/s}\n",
                "t.yaml:3: links[0].speed: found an unknown key; allowed: between, rate, latency, "
                "count, ports"},
        Mistake{
            "unknown_end",
            "nodes: [alpha, b]\nlinks:\n  - {between: [alhpa, b], rate: 1Gbit/s, latency: 1ns}\n",
            "t.yaml:3: links[0].between[0]: found \"alhpa\"; allowed: a node or switch of this "
            "file, or several as n[0-15]; did you mean alpha?"},
        Mistake{"link_to_itself",
                "nodes: [a, b]\nlinks:\n  - {between: [a, a], rate: 1Gbit/s, latency: 1ns}\n",
                "t.yaml:3: links[0]: found a link from a to itself; allowed: two different ends"},
        Mistake{"three_ends",
                "nodes: [a, b]\nlinks:\n  - {between: [a, b, a], rate: 1Gbit/s, latency: 1ns}\n",
                "t.yaml:3: links[0].between: found a list of 3; allowed: a list of 2 names"},
        Mistake{
            "latency_without_unit",
            "nodes: [a, b]\nlinks:\n  - {between: [a, b], rate: 1Gbit/s, latency: 5}\n",
            "t.yaml:3: links[0].latency: found 5; allowed: a time up to a minute, such as 600ns "
            "or 1.5us"},
        Mistake{"both", "generator: {kind: dgx2, rate: 1Gbit/s, latency: 1ns}\nnodes: [a]\n",
                "t.yaml:1: generator: found a generator beside nodes, switches or links; allowed: "
                "one or the other"},
        Mistake{"generator_kind", "generator: {kind: tours, rate: 1Gbit/s, latency: 1ns}\n",
                "t.yaml:1: generator.kind: found \"tours\"; allowed: torus, mesh, fat-tree, "
                "spine-leaf, bigraph, dgx2 or star; did you mean torus?"},
        Mistake{"other_generators_key",
                "generator: {kind: dgx2, rows: 4, rate: 1Gbit/s, latency: 1ns}\n",
                "t.yaml:1: generator.rows: found an unknown key; allowed: kind, rate, latency"},
        Mistake{"odd_bigraph",
                "generator: {kind: bigraph, nodes_per_switch: 1, switches: 3, rate: 1Gbit/s, "
                "latency: 1ns}\n",
                "t.yaml:1: generator: found a bigraph that cannot be (switches: found 3; allowed: "
                "an even number); allowed: one within these bounds"},
        Mistake{"ports_of_several",
                "nodes: [a, b]\nlinks:\n  - {between: [a, b], rate: 1Gbit/s, latency: 1ns, count: "
                "2, ports: [x, y]}\n",
                "t.yaml:3: links[0].ports: found port names for 2 cables; allowed: port names for "
                "one cable"},
        Mistake{"nothing", "{}\n",
                "t.yaml:1: nodes: found nothing: the key is missing; allowed: a list of 1 to 65536 "
                "nodes"}),
    [](const auto& info) { return info.param.name; });

TEST(TopologyFile, AMissingFileIsNamed) {
  try {
    load_topology("/no/such/file.yaml");
    FAIL();
  } catch (const yaml::Error& error) {
    EXPECT_STREQ(error.what(), "/no/such/file.yaml:1: (document): found no file that can be read; "
                               "allowed: a topology");
  }
}

TEST(TopologyFile, ThoseOfTheTreeLoad) {
  std::size_t files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(WEIR_SOURCE_ROOT "/config/topologies")) {
    const Topology topology = load_topology(file.path());
    EXPECT_GT(make_plan(topology, Algorithm::multitree).schedule.messages.size(), 0U);
    ++files;
  }
  EXPECT_GE(files, 2U);
}

/// Another program reads it, here yaml-cpp, with names that YAML could take for other types.
TEST(PlanFile, AFabricIsYamlThatNamesWhatEachSwitchHolds) {
  Topology topology({"yes", "1e3", "a: b"}, {"- s", "t"});
  topology.connect(0, 3, {1000, 1});
  const LinkId port = topology.connect(1, 3, {1000, 1});
  topology.connect(2, 4, {1000, 1});
  topology.connect(3, 4, {1000, 1});
  topology.set_port(Topology::reverse_of(port), "p1");
  std::ostringstream out;
  write_fabric(out, topology, plan_fabric(topology, every_node(topology), 4));
  const YAML::Node file = YAML::Load(out.str());
  ASSERT_EQ(file["rings"].size(), 1U);
  const YAML::Node ring = file["rings"][0];
  EXPECT_EQ(ring["id"].as<int>(), 1);
  EXPECT_EQ(ring["members"].as<std::vector<std::string>>(),
            (std::vector<std::string>{"yes", "1e3", "a: b"}));
  const YAML::Node root = ring["switches"][0];
  EXPECT_EQ(root["name"].as<std::string>(), "- s");
  EXPECT_FALSE(root["parent"]);
  EXPECT_EQ(root["ranks"].as<std::vector<int>>(), (std::vector<int>{0, 2}));
  EXPECT_EQ(root["children"][1]["node"].as<std::string>(), "1e3");
  EXPECT_EQ(root["children"][1]["port"].as<std::string>(), "p1");
  EXPECT_EQ(root["children"][2]["switch"].as<std::string>(), "t");
  EXPECT_EQ(ring["switches"][1]["parent"].as<std::string>(), "- s");
}

/// The rows of ISCA'21 Fig. 5, accelerator 0.
TEST(PlanFile, APlanHasItsTreesAndTables) {
  const Topology mesh = make_mesh(2, 2, {1000, 1});
  std::ostringstream out;
  write_plan(out, mesh, make_plan(mesh, Algorithm::multitree));
  const YAML::Node file = YAML::Load(out.str());
  EXPECT_EQ(file["algorithm"].as<std::string>(), "multitree");
  EXPECT_EQ(file["steps"].as<int>(), 4);
  EXPECT_EQ(file["trees"][0]["edges"][2]["parent"].as<std::string>(), "n2");
  const YAML::Node row = file["tables"][0]["rows"][2];
  EXPECT_EQ(row["op"].as<std::string>(), "reduce");
  EXPECT_EQ(row["flow"].as<int>(), 2);
  EXPECT_EQ(row["parent"].as<std::string>(), "n2");
  EXPECT_EQ(row["children"].as<std::vector<std::string>>(), std::vector<std::string>{"n1"});
}

/// yaml-cpp must read all names that a topology may have, and not take one for two or for a
/// boolean.
TEST(PlanFile, APlanKeepsNamesThatYamlWouldTakeForSomethingElse) {
  const std::vector<std::string> names{"yes",     "1e3",      "a: b", "- s",  "#c", "a,b",
                                       "{d}",     "\"q'",     "",     "e\nf", "~",  " x ",
                                       "\x1b[2J", "\xc3\xa4", "\\n",  "x:",   "%41"};
  Topology topology(names, {"hub"});
  for (VertexId node = 0; node < names.size(); ++node) {
    topology.connect(node, static_cast<VertexId>(names.size()), {1000, 1});
  }
  std::ostringstream out;
  write_plan(out, topology, make_plan(topology, Algorithm::multitree));
  const YAML::Node file = YAML::Load(out.str());
  EXPECT_EQ(file["participants"].as<std::vector<std::string>>(), names);
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    EXPECT_EQ(file["trees"][rank]["root"].as<std::string>(), names[rank]);
    EXPECT_EQ(file["tables"][rank]["node"].as<std::string>(), names[rank]);
  }
}

TEST(Drawings, QuoteNamesAndSayWhoLaysThemOut) {
  Topology topology({"say \"hi\"", "b"}, {"s"});
  topology.connect(0, 2, {1000, 1});
  topology.connect(1, 2, {1000, 1});
  const Drawing drawing = draw_topology(topology);
  EXPECT_EQ(drawing.engine, "dot");
  EXPECT_NE(drawing.text.find(R"(label="say \"hi\"")"), std::string::npos);
  EXPECT_EQ(draw_topology(make_torus(3, 3, {1000, 1})).engine, "neato");
}

} // namespace
} // namespace weir::plan::plan_file_test
