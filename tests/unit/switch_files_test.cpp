// SPDX-License-Identifier: BSD-3-Clause

/// The configuration of each switch that a fabric is planned for. Another program reads it, here
/// yaml-cpp; and the switch's own reader.

#include "config/agreement.hpp"
#include "config/config.hpp"
#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/generators.hpp"
#include "plan/switch_files.hpp"
#include "plan/topology_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::plan::switch_files_test {
namespace {

std::vector<std::string> addresses_of(const Topology& topology) {
  std::vector<std::string> addresses;
  for (VertexId node = 0; node < topology.node_count(); ++node) {
    addresses.push_back("10.0.0." + std::to_string(node + 1));
  }
  return addresses;
}

std::vector<SwitchFile> files_of(const Topology& topology, std::uint32_t most_rings,
                                 SwitchFileSettings settings = {}) {
  settings.addresses = addresses_of(topology);
  return switch_files(topology, plan_fabric(topology, every_node(topology), most_rings), settings);
}

/// By the switch's name.
std::map<std::string, YAML::Node> read(const std::vector<SwitchFile>& files) {
  std::map<std::string, YAML::Node> nodes;
  for (const SwitchFile& file : files) {
    nodes[file.name] = YAML::Load(file.text);
  }
  return nodes;
}

/// A list's entries on one line.
std::string as_text(const YAML::Node& node) {
  YAML::Emitter emitter;
  emitter << YAML::Flow;
  if (!node.IsSequence()) {
    emitter << node;
    return emitter.c_str();
  }
  std::string text;
  for (const YAML::Node& entry : node) {
    text += (text.empty() ? "" : ", ") + as_text(entry);
  }
  return fmt::format("[{}]", text);
}

/// Racks of two and three hosts, two spines, and port names at some ends.
constexpr const char* kRacks = R"(nodes: ["h[0-4]"]
switches: [left, right, "spine[0-1]"]
links:
  - {between: ["h[0-1]", left], rate: 25Gbit/s, latency: 600ns}
  - {between: ["h[2-4]", right], rate: 25Gbit/s, latency: 600ns}
  - {between: [left, spine0], rate: 25Gbit/s, latency: 600ns, ports: [up0, down7]}
  - {between: [left, spine1], rate: 25Gbit/s, latency: 600ns, ports: [up1, down7]}
  - {between: [right, "spine[0-1]"], rate: 25Gbit/s, latency: 600ns}
)";

TEST(SwitchFiles, SayWhatEachSwitchOfTwoTreesHolds) {
  auto files = read(files_of(parse_topology(kRacks, "racks.yaml"), 2));
  ASSERT_EQ(files.size(), 4U);
  const YAML::Node left = files["left"];
  ASSERT_EQ(left["rings"].size(), 2U);
  for (const int ring : {0, 1}) {
    const YAML::Node one = left["rings"][ring];
    EXPECT_EQ(one["id"].as<int>(), ring + 1);
    EXPECT_EQ(
        as_text(one["members"]),
        R"([{ip: 10.0.0.1}, {ip: 10.0.0.2}, {ip: 10.0.0.3}, {ip: 10.0.0.4}, {ip: 10.0.0.5}])");
    EXPECT_EQ(as_text(one["parent"]),
              ring == 0 ? "{switch: spine0, port: up0}" : "{switch: spine1, port: up1}");
    EXPECT_EQ(as_text(one["children"]), "[{rank: 0, port: h0}, {rank: 1, port: h1}]");
  }
  const YAML::Node right = files["right"]["rings"][1];
  EXPECT_EQ(as_text(right["parent"]), "{switch: spine1, port: spine1}");
  EXPECT_EQ(as_text(right["children"]),
            "[{rank: 2, port: h2}, {rank: 3, port: h3}, {rank: 4, port: h4}]");
  const YAML::Node root = files["spine1"]["rings"];
  ASSERT_EQ(root.size(), 1U);
  EXPECT_EQ(root[0]["id"].as<int>(), 2);
  EXPECT_FALSE(root[0]["parent"]);
  EXPECT_EQ(
      as_text(root[0]["children"]),
      "[{switch: left, ranks: [0, 1], port: down7}, {switch: right, ranks: [2, 4], port: right}]");
  EXPECT_EQ(root[0]["window"].as<int>(), 8);
  EXPECT_EQ(root[0]["max_message_bytes"].as<int>(), 65536);
  EXPECT_EQ(root[0]["mtu"].as<int>(), 1024);
}

/// One uplink for each rack: that of the first ring's tree.
TEST(SwitchFiles, OnePortOfEachRackBridgesUp) {
  auto files = read(files_of(parse_topology(kRacks, "racks.yaml"), 2));
  const auto closed = [&](const std::string& name) {
    std::set<std::string> ports;
    for (const YAML::Node& port : files[name]["ports"]) {
      if (port["bridge"]) {
        EXPECT_EQ(port["bridge"].Scalar(), "no");
        ports.insert(port["name"].as<std::string>());
      }
    }
    return ports;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(closed("left"), Names{"up1"});
  EXPECT_EQ(closed("right"), Names{"spine1"});
  EXPECT_EQ(closed("spine0"), Names{});
  EXPECT_EQ(closed("spine1"), (Names{"down7", "right"}));
}

TEST(SwitchFiles, FillInDevicesAndOptions) {
  SwitchFileSettings settings;
  settings.device =
      "net_memif{number},role={role},id={cable},socket=/tmp/{server}.sock,own={switch}/{port}";
  settings.eal = {"--no-huge", "--file-prefix=weir-{switch}"};
  auto files = read(files_of(parse_topology(kRacks, "racks.yaml"), 1, settings));
  EXPECT_EQ(as_text(files["left"]["eal"]["options"]), "[--no-huge, --file-prefix=weir-left]");
  const auto device = [&](const std::string& name, int port) {
    return files[name]["ports"][port]["device"].as<std::string>();
  };
  EXPECT_EQ(device("left", 0), "net_memif0,role=server,id=0,socket=/tmp/left.sock,own=left/h0");
  EXPECT_EQ(device("left", 2), "net_memif2,role=server,id=5,socket=/tmp/left.sock,own=left/up0");
  EXPECT_EQ(device("spine0", 0),
            "net_memif0,role=client,id=5,socket=/tmp/left.sock,own=spine0/down7");
}

/// And each switch takes its file.
TEST(SwitchFiles, RingsHaveTheNumbersAndPortsWhatThesePacketsNeed) {
  SwitchFileSettings settings;
  settings.window = 16;
  settings.max_message_bytes = 131072;
  for (const std::uint32_t mtu : {256U, 1024U, 2048U, 4096U}) {
    settings.mtu = mtu;
    for (const SwitchFile& file : files_of(parse_topology(kRacks, "racks.yaml"), 2, settings)) {
      const config::Config config = config::parse_config(file.text, file.name);
      EXPECT_EQ(config.rings.front().mtu, mtu);
      EXPECT_EQ(config.rings.front().window, 16U);
      EXPECT_EQ(config.rings.front().max_message_bytes, 131072U);
      EXPECT_EQ(config.ports.front().mtu > 1500, mtu > 1024) << mtu;
    }
  }
}

TEST(SwitchFiles, TellWhoHasNoRing) {
  std::set<std::string> idle;
  for (const SwitchFile& file : files_of(parse_topology(kRacks, "racks.yaml"), 1)) {
    if (!file.has_rings) {
      idle.insert(file.name);
    }
  }
  EXPECT_EQ(idle, (std::set<std::string>{"spine1"}));
}

TEST(SwitchFiles, WordsInBracesThatNothingIsPutFor) {
  EXPECT_EQ(unknown_word("x{foo}", kDeviceWords), "{foo}");
  EXPECT_EQ(unknown_word("{port},{Number}{foo}", kDeviceWords), "{Number}");
  EXPECT_EQ(unknown_word("{port}{number}{switch}{cable}{role}{server}", kDeviceWords), "");
  EXPECT_EQ(unknown_word("{port}", kEalWords), "{port}");
  EXPECT_EQ(unknown_word("{switch", kEalWords), "");
}

/// What others call a switch is the name of its file.
TEST(SwitchFiles, AgreeAlongTheirTrees) {
  std::vector<config::SwitchConfig> switches;
  const Topology topology = parse_topology(kRacks, "racks.yaml");
  for (const SwitchFile& file : files_of(topology, 2)) {
    switches.push_back(
        {file.name, file.name, config::parse_config(file.text, file.name), file.text});
  }
  EXPECT_TRUE(config::disagreements(switches).empty());
  EXPECT_EQ(config::agreed_rings(switches).size(), 2U);
}

/// On one switch the members have ports, and there is no tree.
TEST(SwitchFiles, OneSwitchHasNoTree) {
  const auto files = files_of(make_star(3, {1000, 1}), 4);
  ASSERT_EQ(files.size(), 1U);
  const config::Config config = config::parse_config(files[0].text, "hub.yaml");
  ASSERT_EQ(config.ports.size(), 3U);
  ASSERT_EQ(config.rings.size(), 1U);
  EXPECT_EQ(config.rings[0].world(), 3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(config.rings[0].members[rank].port, rank);
  }
}

/// The switch's own reader takes each part of two trees, and closes the loop that they make.
TEST(SwitchFiles, LoadAsPartsOfTwoRings) {
  std::map<std::string, config::Config> configs;
  for (const SwitchFile& file : files_of(parse_topology(kRacks, "racks.yaml"), 2)) {
    configs[file.name] = config::parse_config(file.text, file.name);
  }
  ASSERT_EQ(configs.size(), 4U);
  for (const std::string spine : {"spine0", "spine1"}) {
    ASSERT_EQ(configs[spine].rings.size(), 1U) << spine;
    const ring::RingSpec& root = configs[spine].rings[0];
    EXPECT_FALSE(root.parent) << spine;
    ASSERT_EQ(root.children.size(), 2U) << spine;
    EXPECT_EQ(root.children[1].kind, ring::ChildKind::switch_below) << spine;
    EXPECT_EQ(root.children[1].ranks.first, 2) << spine;
    EXPECT_EQ(root.children[1].ranks.count, 3) << spine;
    EXPECT_EQ(root.children[1].port, 1) << spine;
  }
  ASSERT_EQ(configs["right"].rings.size(), 2U);
  for (std::uint16_t ring = 0; ring < 2; ++ring) {
    const ring::RingSpec& part = configs["right"].rings[ring];
    ASSERT_TRUE(part.parent) << ring;
    EXPECT_EQ(part.parent->port, 3 + ring);
    EXPECT_EQ(part.parent->name, fmt::format("spine{}", ring));
    ASSERT_EQ(part.children.size(), 3U) << ring;
    EXPECT_EQ(part.children[0].kind, ring::ChildKind::rank) << ring;
    EXPECT_EQ(part.children[0].ranks.first, 2) << ring;
    EXPECT_EQ(part.children[0].port, 0) << ring;
  }
  const auto closed = [&](const std::string& name) {
    std::string ports;
    for (const config::PortConfig& port : configs[name].ports) {
      ports += port.bridge == config::YesNo::no ? port.name + " " : "";
    }
    return ports;
  };
  EXPECT_EQ(closed("left"), "up1 ");
  EXPECT_EQ(closed("right"), "spine1 ");
  EXPECT_EQ(closed("spine0"), "");
  EXPECT_EQ(closed("spine1"), "down7 right ");
}

TEST(SwitchFiles, ParallelCablesHaveNamesOfTheirOwn) {
  Topology topology({"a", "b"}, {"all", "rack 1"});
  topology.connect(0, 2, {1000, 1});
  topology.connect(1, 3, {1000, 1});
  topology.connect(2, 3, {1000, 1});
  topology.connect(2, 3, {1000, 1});
  auto files = read(files_of(topology, 2));
  EXPECT_EQ(as_text(files["all"]["ports"]),
            "[{name: a, device: device-of-a}, {name: rack-1, device: device-of-rack-1}, {name: "
            "rack-1-2, device: device-of-rack-1-2, bridge: no}]");
  EXPECT_EQ(files["rack-1"]["ports"][1]["name"].as<std::string>(),
            "all-2"); // not a word of the prompt
  EXPECT_EQ(files["all"]["rings"][0]["children"][1]["switch"].as<std::string>(), "rack-1");
}

TEST(SwitchFiles, RefuseWhatNoSwitchWouldTake) {
  Topology topology({"a", "b"}, {"s"});
  const LinkId one = topology.connect(0, 2, {1000, 1});
  const LinkId other = topology.connect(1, 2, {1000, 1});
  topology.set_port(Topology::reverse_of(one), "p/1");
  EXPECT_THROW(files_of(topology, 1), PlanError);
  topology.set_port(Topology::reverse_of(one), "p1");
  topology.set_port(Topology::reverse_of(other), "p1");
  EXPECT_THROW(files_of(topology, 1), PlanError);
  topology.set_port(Topology::reverse_of(other), "json");
  EXPECT_THROW(files_of(topology, 1), PlanError);
  topology.set_port(Topology::reverse_of(other), "p2");
  EXPECT_NO_THROW(files_of(topology, 1));
  EXPECT_THROW(files_of(make_star(257, {1000, 1}), 1), PlanError);
  Topology alike({"a", "b"}, {"s/1", "s-1"});
  alike.connect(0, 2, {1000, 1});
  alike.connect(1, 3, {1000, 1});
  alike.connect(2, 3, {1000, 1});
  EXPECT_THROW(files_of(alike, 1), PlanError);
}

/// As the switch's own reader has it.
TEST(SwitchFiles, ASwitchHasThirtyTwoPorts) {
  const auto files = files_of(make_star(32, {1000, 1}), 1);
  EXPECT_EQ(config::parse_config(files[0].text, "hub.yaml").ports.size(), 32U);
  EXPECT_THROW(files_of(make_star(33, {1000, 1}), 1), PlanError);
}

/// Two trees that hang on different switches number the hosts in different orders.
TEST(SwitchFiles, RefuseRingsWhoseRanksDiffer) {
  const Topology bigraph = make_bigraph(1, 8, {1000, 1}, {1000, 1});
  ASSERT_GT(plan_fabric(bigraph, every_node(bigraph), 2).rings.size(), 1U);
  EXPECT_THROW(files_of(bigraph, 2), PlanError);
  EXPECT_NO_THROW(files_of(bigraph, 1));
}

/// The ports that bridge, of all switches: both ends of a cable alike, no loop, and a way between
/// any two hosts.
TEST(SwitchFiles, BridgesAreATreeBetweenAllHosts) {
  const std::vector<Topology> topologies{
      make_spine_leaf(
          {.leaves = 4, .nodes_per_leaf = 2, .spines = 3, .host = {1000, 1}, .uplink = {1000, 1}}),
      make_fat_tree(4, 4, {1000, 1}), make_dgx2({1000, 1}, {1000, 1}),
      make_bigraph(2, 8, {1000, 1}, {1000, 1})};
  for (const Topology& topology : topologies) {
    SwitchFileSettings settings;
    settings.device = "{cable}";
    std::map<std::string, unsigned> open_ends;
    for (auto& [name, file] : read(files_of(topology, 1, settings))) {
      for (const YAML::Node& port : file["ports"]) {
        open_ends[port["device"].as<std::string>()] += port["bridge"] ? 0 : 1;
      }
    }
    std::vector<VertexId> group(topology.vertex_count());
    std::iota(group.begin(), group.end(), VertexId{0});
    for (LinkId link = 0; link < topology.links().size(); link += 2) {
      const Link& cable = topology.link(link);
      const unsigned ends = open_ends[std::to_string(link / 2)];
      const bool is_hosts = topology.is_node(cable.from) || topology.is_node(cable.to);
      EXPECT_TRUE(ends == (is_hosts ? 1U : 2U) || (ends == 0 && !is_hosts)) << link;
      if (ends != 0) {
        const VertexId from = group[cable.from];
        const VertexId to = group[cable.to];
        EXPECT_NE(from, to) << "a loop";
        std::replace(group.begin(), group.end(), from, to);
      }
    }
    for (VertexId node = 1; node < topology.node_count(); ++node) {
      EXPECT_EQ(group[node], group[0]) << topology.name(node);
    }
  }
}

} // namespace
} // namespace weir::plan::switch_files_test
