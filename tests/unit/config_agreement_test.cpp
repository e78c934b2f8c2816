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
  const std::string text =
      "ports: [{name: a, device: d0}, {name: b, device: d1}]\nrings:\n" + rings;
  return {name, file, parse_config(text, file), text};
}

std::vector<SwitchConfig> configs_of(const Parts& parts) {
  std::vector<SwitchConfig> configs;
  for (const auto& [name, part] : parts) {
    configs.push_back(config_of(name, ring_of(part)));
  }
  return configs;
}

using Said = std::vector<std::string>;

Said texts_of(const std::vector<Disagreement>& disagreements) {
  Said texts;
  for (const Disagreement& one : disagreements) {
    texts.push_back(one.text);
  }
  return texts;
}

std::vector<Disagreement> found_with(const std::string& name, const Part& part) {
  Parts parts = kTree;
  parts[name] = part;
  return disagreements(configs_of(parts));
}

/// What is said when one switch has this part.
Said said_with(const std::string& name, const Part& part) {
  return texts_of(found_with(name, part));
}

TEST(ConfigAgreement, ATreeInOrder) {
  EXPECT_EQ(texts_of(disagreements(configs_of(kTree))), Said{});
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

/// No file counts as the right one, wherever it stands.
TEST(ConfigAgreement, NumbersAndMembersThatDifferAreSaidOfAllFiles) {
  const auto said_of = [](const std::string& name, const std::string& numbers) {
    Part other = kTree.at(name);
    other.numbers = numbers;
    return said_with(name, other);
  };
  EXPECT_EQ(
      said_of("low", "window: 4, max_message_bytes: 65536, mtu: 512"),
      (Said{"ring 7: found window 4 in low.yaml:3, and window 8 in leaf0.yaml:3, leaf1.yaml:3, "
            "spine.yaml:3; allowed: the same in the files of all its switches",
            "ring 7: found mtu 512 in low.yaml:3, and mtu 1024 in leaf0.yaml:3, leaf1.yaml:3, "
            "spine.yaml:3; allowed: the same in the files of all its switches"}));
  EXPECT_EQ(said_of("leaf0", "window: 8, max_message_bytes: 4096, mtu: 1024"),
            Said{"ring 7: found max_message_bytes 4096 in leaf0.yaml:3, and max_message_bytes "
                 "65536 in leaf1.yaml:3, low.yaml:3, spine.yaml:3; allowed: the same in the files "
                 "of all its switches"});
  Part other = kLow;
  other.last_member = "10.0.0.9";
  EXPECT_EQ(said_with("low", other),
            Said{"ring 7: found rank 4 at 10.0.0.9 in low.yaml:3, and rank 4 at 10.0.0.5 in "
                 "leaf0.yaml:3, leaf1.yaml:3, spine.yaml:3; allowed: the same in the files of all "
                 "its switches"});
  other.last_member = "10.0.0.5}, {ip: 10.0.0.6";
  EXPECT_EQ(said_with("low", other),
            Said{"ring 7: found 6 members in low.yaml:3, and 5 members in leaf0.yaml:3, "
                 "leaf1.yaml:3, spine.yaml:3; allowed: the same in the files of all its switches"});
  EXPECT_EQ(found_with("low", other).front().files,
            (Said{"leaf0.yaml", "leaf1.yaml", "low.yaml", "spine.yaml"}));
}

TEST(ConfigAgreement, ManyFilesAreCounted) {
  Parts parts;
  for (char name = 'a'; name < 'h'; ++name) {
    parts[std::string(1, name)] = kLow;
  }
  parts["a"].numbers = "window: 4, max_message_bytes: 65536, mtu: 1024";
  EXPECT_EQ(disagreements(configs_of(parts)).front().text,
            "ring 7: found window 4 in a.yaml:3, and window 8 in b.yaml:3, c.yaml:3, d.yaml:3, "
            "e.yaml:3 and 2 more; allowed: the same in the files of all its switches");
}

TEST(ConfigAgreement, RanksOfAChildAreThoseThatItHas) {
  const Part other{"children: [{switch: leaf0, ranks: [0, 2], port: a}, {switch: leaf1, ranks: "
                   "[3, 4], port: b}]"};
  EXPECT_EQ(said_with("spine", other),
            (Said{"spine.yaml:4: rings[0].children[0].ranks: found [0, 2] in ring 7; allowed: [0, "
                  "1], for which leaf0.yaml:4 has children, or other children there",
                  "spine.yaml:4: rings[0].children[1].ranks: found [3, 4] in ring 7; allowed: [2, "
                  "4], for which leaf1.yaml:4 has children, or other children there"}));
  EXPECT_EQ(found_with("spine", other).front().files, (Said{"spine.yaml", "leaf0.yaml"}));
}

/// Not the spine, whose file is right, is to blame alone.
TEST(ConfigAgreement, ACopyOfAnotherFile) {
  Parts parts = kTree;
  parts.erase("low");
  parts["leaf1"] = kLeaf0;
  EXPECT_EQ(texts_of(disagreements(configs_of(parts))),
            Said{"spine.yaml:4: rings[0].children[1].ranks: found [2, 4] in ring 7; allowed: [0, "
                 "1], for which leaf1.yaml:4 has children (as leaf0.yaml:4 has: is one a copy?), "
                 "or other children there"});
}

TEST(ConfigAgreement, ParentsAndChildrenNameEachOther) {
  const Part other{"parent: {switch: spine, port: a}, children: [{rank: 3}, {rank: 4}]"};
  EXPECT_EQ(said_with("low", other),
            (Said{"leaf1.yaml:4: rings[0].children[1].switch: found low, which has the parent "
                  "spine at low.yaml:4, in ring 7; allowed: a switch whose parent is leaf1",
                  "low.yaml:4: rings[0].parent.switch: found spine, which has no child low at "
                  "spine.yaml:4, in ring 7; allowed: a switch that has low among its children"}));
}

TEST(ConfigAgreement, ASwitchWithoutAFileOrWithoutTheRing) {
  Parts parts = kTree;
  parts.erase("leaf0");
  const Said said{"spine.yaml:4: rings[0].children[0].switch: found leaf0 in ring 7; allowed: the "
                  "name of a file: leaf1, low, spine"};
  EXPECT_EQ(texts_of(disagreements(configs_of(parts))), said);
  std::vector<SwitchConfig> configs = configs_of(parts);
  configs.push_back({"leaf0", "leaf0.yaml", {}, {}});
  const std::vector<Disagreement> found = disagreements(configs);
  EXPECT_EQ(texts_of(found),
            Said{"spine.yaml:4: rings[0].children[0].switch: found leaf0, whose file leaf0.yaml "
                 "does not have it, in ring 7; allowed: a switch that has the ring"});
  EXPECT_EQ(found.front().files, (Said{"spine.yaml", "leaf0.yaml"}));
}

TEST(ConfigAgreement, OneRoot) {
  EXPECT_EQ(said_with("other", Part{}),
            Said{"ring 7: found 2 roots: other (other.yaml:3), spine (spine.yaml:3); allowed: one "
                 "switch without a parent"});
  Parts parts = kTree;
  parts.erase("spine");
  const Said said = texts_of(disagreements(configs_of(parts)));
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
  EXPECT_EQ(texts_of(disagreements(configs_of(parts))),
            Said{"ring 7: found a circle of parents: x (x.yaml:4), y (y.yaml:4), z (z.yaml:4); "
                 "allowed: parents that lead to the root"});
}

TEST(ConfigAgreement, TheOtherSwitchesOfARing) {
  const Config leaf = config_of("leaf1", ring_of(kLeaf1)).config;
  EXPECT_EQ(switches_around(leaf.rings[0]), (Said{"spine", "low"}));
}

TEST(ConfigAgreement, RingsOfDifferentIdsHaveNothingToDoWithEachOther) {
  std::string other = ring_of({});
  other.replace(other.find("id: 7"), 5, "id: 8");
  other.replace(other.find("mtu: 1024"), 9, "mtu: 256");
  std::vector<SwitchConfig> configs = configs_of(kTree);
  configs.push_back(config_of("single", other));
  EXPECT_EQ(texts_of(disagreements(configs)), Said{});
  EXPECT_EQ(agreed_rings(configs).size(), 2U);
}

} // namespace
} // namespace weir::config::config_agreement_test
