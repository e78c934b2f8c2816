// SPDX-License-Identifier: BSD-3-Clause

/// Files of several switches against each other: a tree of a spine, two leaves and a leaf's leaf.

#include "config/agreement.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace weir::config::config_agreement_test {
namespace {

/// A ring's place in a tree, or its other numbers in place of the usual ones.
struct Part {
  std::string tree;
  std::string numbers = "window: 8, max_message_bytes: 65536, mtu: 1024";
  std::string last_member = "10.0.0.5";
};

using Parts = std::map<std::string, Part>; // by switch

const Part kSpine{"children: [{switch: leaf0, ranks: [0, 1], port: a}, {switch: leaf1, ranks: [2, "
                  "4], port: b}]"};
const Part kLeaf0{"parent: {switch: spine, port: a}, children: [{rank: 0}, {rank: 1}]"};
const Part kLeaf1{"parent: {switch: spine, port: a}, children: [{rank: 2}, {switch: low, ranks: "
                  "[3, 4], port: b}]"};
const Part kLow{"parent: {switch: leaf1, port: a}, children: [{rank: 3}, {rank: 4}]"};

const Parts kTree{{"spine", kSpine}, {"leaf0", kLeaf0}, {"leaf1", kLeaf1}, {"low", kLow}};

std::string ring_of(const Part& part) {
  return fmt::format("  - {{ id: 7, {}, members: [{{ip: 10.0.0.1}}, {{ip: 10.0.0.2}}, {{ip: "
                     "10.0.0.3}}, {{ip: 10.0.0.4}}, {{ip: {}}}],\n      {} }}\n",
                     part.numbers, part.last_member, part.tree);
}

SwitchConfig config_of(const std::string& name, const std::string& rings) {
  const std::string file = name + ".yaml";
  return {name, file,
          parse_config("ports: [{name: a, device: d0}, {name: b, device: d1}]\nrings:\n" + rings,
                       file)};
}

std::vector<SwitchConfig> configs_of(const Parts& parts) {
  std::vector<SwitchConfig> configs;
  for (const auto& [name, part] : parts) {
    configs.push_back(config_of(name, ring_of(part)));
  }
  return configs;
}

/// What is said when one switch has this part.
std::vector<std::string> said_with(const std::string& name, const Part& part) {
  Parts parts = kTree;
  parts[name] = part;
  return disagreements(configs_of(parts));
}

using Said = std::vector<std::string>;

TEST(ConfigAgreement, ATreeInOrder) {
  EXPECT_EQ(disagreements(configs_of(kTree)), Said{});
  const std::vector<AgreedRing> rings = agreed_rings(configs_of(kTree));
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].id, 7U);
  EXPECT_EQ(rings[0].world, 5U);
  EXPECT_EQ(rings[0].root, "spine");
  EXPECT_EQ(rings[0].switches, 4U);
}

TEST(ConfigAgreement, PatienceMayDiffer) {
  Part other = kLow;
  other.numbers += ", patience: 9, keep_alive: rnr, lease: 20";
  EXPECT_EQ(said_with("low", other), Said{});
}

TEST(ConfigAgreement, NumbersAndMembersAreThoseOfTheFirstFile) {
  Part other = kLow;
  other.numbers = "window: 4, max_message_bytes: 65536, mtu: 512";
  EXPECT_EQ(said_with("low", other),
            (Said{"low.yaml: rings[0].window: found 4 in ring 7; allowed: 8, as leaf0.yaml has it",
                  "low.yaml: rings[0].mtu: found 512 in ring 7; allowed: 1024, as leaf0.yaml has "
                  "it"}));
  other = kLow;
  other.numbers = "window: 8, max_message_bytes: 4096, mtu: 1024";
  EXPECT_EQ(said_with("low", other), Said{"low.yaml: rings[0].max_message_bytes: found 4096 in "
                                          "ring 7; allowed: 65536, as leaf0.yaml has it"});
  other = kLow;
  other.last_member = "10.0.0.9";
  EXPECT_EQ(said_with("low", other), Said{"low.yaml: rings[0].members[4].ip: found 10.0.0.9 in "
                                          "ring 7; allowed: 10.0.0.5, as leaf0.yaml has it"});
  other = kLow;
  other.last_member = "10.0.0.5}, {ip: 10.0.0.6";
  EXPECT_EQ(said_with("low", other), Said{"low.yaml: rings[0].members: found 6 members in ring 7; "
                                          "allowed: 5, as leaf0.yaml has it"});
}

TEST(ConfigAgreement, RanksOfAChildAreThoseThatItHas) {
  const Part other{"children: [{switch: leaf0, ranks: [0, 2], port: a}, {switch: leaf1, ranks: "
                   "[3, 4], port: b}]"};
  EXPECT_EQ(said_with("spine", other),
            (Said{"spine.yaml: rings[0].children[0].ranks: found [0, 2] in ring 7; allowed: [0, "
                  "1], for which leaf0.yaml has children",
                  "spine.yaml: rings[0].children[1].ranks: found [3, 4] in ring 7; allowed: [2, "
                  "4], for which leaf1.yaml has children"}));
}

TEST(ConfigAgreement, ParentsAndChildrenNameEachOther) {
  const Part other{"parent: {switch: spine, port: a}, children: [{rank: 3}, {rank: 4}]"};
  EXPECT_EQ(said_with("low", other),
            (Said{"leaf1.yaml: rings[0].children[1].switch: found low, which has the parent spine "
                  "in ring 7; allowed: a switch whose parent is leaf1",
                  "low.yaml: rings[0].parent.switch: found spine in ring 7; allowed: a switch "
                  "that has low among its children"}));
}

TEST(ConfigAgreement, ASwitchWithoutAFileOrWithoutTheRing) {
  Parts parts = kTree;
  parts.erase("leaf0");
  const Said said{"spine.yaml: rings[0].children[0].switch: found leaf0 in ring 7; allowed: the "
                  "name of a file: leaf1, low, spine"};
  EXPECT_EQ(disagreements(configs_of(parts)), said);
  std::vector<SwitchConfig> configs = configs_of(parts);
  configs.push_back({"leaf0", "leaf0.yaml", {}});
  EXPECT_EQ(disagreements(configs),
            Said{"spine.yaml: rings[0].children[0].switch: found leaf0, whose file leaf0.yaml does "
                 "not have it, in ring 7; allowed: a switch that has the ring"});
}

TEST(ConfigAgreement, OneRoot) {
  EXPECT_EQ(said_with("other", Part{}),
            Said{"ring 7: found 2 roots: other, spine; allowed: one switch without a parent"});
  Parts parts = kTree;
  parts.erase("spine");
  const Said said = disagreements(configs_of(parts));
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[2], "ring 7: found no root; allowed: one switch without a parent");
}

/// Each of three switches has the next as its only child.
TEST(ConfigAgreement, ParentsInACircle) {
  const auto between = [](const std::string& above, const std::string& below) {
    return Part{fmt::format("parent: {{switch: {}, port: a}}, children: [{{switch: {}, ranks: [1, "
                            "2], port: b}}]",
                            above, below)};
  };
  Parts parts = kTree;
  parts["x"] = between("z", "y");
  parts["y"] = between("x", "z");
  parts["z"] = between("y", "x");
  EXPECT_EQ(disagreements(configs_of(parts)),
            Said{"ring 7: found a circle of parents: x, y, z; allowed: parents that lead to the "
                 "root"});
}

TEST(ConfigAgreement, RingsOfDifferentIdsHaveNothingToDoWithEachOther) {
  std::string other = ring_of({});
  other.replace(other.find("id: 7"), 5, "id: 8");
  other.replace(other.find("mtu: 1024"), 9, "mtu: 256");
  std::vector<SwitchConfig> configs = configs_of(kTree);
  configs.push_back(config_of("single", other));
  EXPECT_EQ(disagreements(configs), Said{});
  EXPECT_EQ(agreed_rings(configs).size(), 2U);
}

} // namespace
} // namespace weir::config::config_agreement_test
