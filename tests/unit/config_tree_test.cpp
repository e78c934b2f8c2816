// SPDX-License-Identifier: BSD-3-Clause

/// A ring's place in a tree of switches: what a file says of it, what is refused and in which
/// words, and what comes of a change.

#include "config/config.hpp"
#include "config/difference.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::config::config_tree_test {
namespace {

using ring::ChildKind;

/// `tree` stands on line 9.
constexpr std::string_view kFile = R"(ports:
  - {{ name: up0, device: d0 }}
  - {{ name: up1, device: d1 }}
  - {{ name: h0, device: d2 }}
  - {{ name: h1, device: d3 }}
rings:
  - {{ id: 17, window: 8, max_message_bytes: 65536, mtu: 1024,
      members: [{{ ip: 10.0.0.1{} }}, {{ ip: 10.0.0.2 }}, {{ ip: 10.0.0.3 }}, {{ ip: 10.0.0.4 }}],
      {} }}
)";

std::string file_with(std::string_view tree, std::string_view of_first_member = "") {
  return fmt::format(fmt::runtime(kFile), of_first_member, tree);
}

Config config_with(std::string_view tree) {
  return parse_config(file_with(tree), "f.yaml");
}

ring::RingSpec ring_with(std::string_view tree) {
  return config_with(tree).rings.at(0);
}

constexpr std::string_view kLeaf =
    "parent: { switch: spine0, port: up0 }, children: [{ rank: 1, port: h0 }, { rank: 2 }]";
constexpr std::string_view kRoot = "children: [{ rank: 0 }, { switch: rack7, ranks: [1, 3], port: "
                                   "up1 }]";

TEST(ConfigTree, ALeafHasAParentAndSomeOfTheRanks) {
  const ring::RingSpec ring = ring_with(kLeaf);
  ASSERT_TRUE(ring.parent);
  EXPECT_EQ(ring.parent->name, "spine0");
  EXPECT_EQ(ring.parent->port, 0);
  ASSERT_EQ(ring.children.size(), 2U);
  EXPECT_EQ(ring.children[0].kind, ChildKind::rank);
  EXPECT_EQ(ring.children[0].ranks.first, 1);
  EXPECT_EQ(ring.children[0].port, 2);
  EXPECT_EQ(ring.children[1].ranks.first, 2);
  EXPECT_EQ(ring.children[1].port, std::nullopt) << "its hello says";
}

TEST(ConfigTree, ARootHasAllRanks) {
  const ring::RingSpec ring = ring_with(kRoot);
  EXPECT_FALSE(ring.parent);
  ASSERT_EQ(ring.children.size(), 2U);
  EXPECT_EQ(ring.children[0].kind, ChildKind::rank);
  EXPECT_EQ(ring.children[1].kind, ChildKind::switch_below);
  EXPECT_EQ(ring.children[1].name, "rack7");
  EXPECT_EQ(ring.children[1].ranks.first, 1);
  EXPECT_EQ(ring.children[1].ranks.count, 3);
  EXPECT_EQ(ring.children[1].port, 1);
}

TEST(ConfigTree, ASwitchBelowMayAnswerForOneRank) {
  const ring::RingSpec ring = ring_with(
      "parent: { switch: a, port: up0 }, children: [{ switch: b, ranks: [3, 3], port: up1 }]");
  ASSERT_EQ(ring.children.size(), 1U);
  EXPECT_EQ(ring.children[0].kind, ChildKind::switch_below);
  EXPECT_EQ(ring.children[0].ranks.count, 1);
}

/// So the ports stand with the members, as without `children`.
TEST(ConfigTree, ChildrenThatAreAllRanksAreTheMembers) {
  const ring::RingSpec ring =
      ring_with("children: [{ rank: 0 }, { rank: 1, port: h1 }, { rank: 2 }, { rank: 3 }]");
  EXPECT_TRUE(ring.children.empty());
  EXPECT_EQ(ring.members[0].port, std::nullopt);
  EXPECT_EQ(ring.members[1].port, 3);
}

struct Mistake {
  std::string_view tree;
  std::string_view error; // what() without "f.yaml:9: rings[0]."
};

std::string error_of(const std::string& yaml) {
  try {
    parse_config(yaml, "f.yaml");
    return "no error";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

constexpr Mistake kChildren[]{
    {"children: []", "children: found a list of 0; allowed: a list of 1 to 256 children"},
    {"children: [{ port: h0 }]",
     "children[0]: found neither rank: nor switch:; allowed: {rank: NUMBER}, or {switch: NAME, "
     "ranks: [FIRST, LAST], port: PORT}"},
    {"children: [{ ranks: [0, 1], port: h0 }]",
     "children[0]: found neither rank: nor switch:; allowed: {rank: NUMBER}, or {switch: NAME, "
     "ranks: [FIRST, LAST], port: PORT}"},
    {"children: [{ rank: 0, switch: rack7, port: h0 }]",
     "children[0].switch: found \"rack7\" beside rank:; allowed: rank: for a rank, or switch: with "
     "ranks: for a switch"},
    {"children: [{ rank: 0, ranks: [0, 1] }]",
     "children[0].ranks: found a list beside rank:; allowed: ranks: for a switch alone"},
    {"children: [{ switch: rack7, port: h0 }]",
     "children[0].ranks: found nothing: the key is missing; allowed: [FIRST, LAST], the ranks that "
     "the switch "
     "answers for"},
    {"children: [{ switch: rack7, ranks: [0], port: h0 }]",
     "children[0].ranks: found a list of 1; allowed: a list of 2 ranks, [FIRST, LAST]"},
    {"children: [{ switch: rack7, ranks: [2, 1], port: h0 }]",
     "children[0].ranks: found [2, 1]; allowed: the first rank first, as [1, 2]"},
    {"children: [{ switch: rack7, ranks: [0, 256], port: h0 }]",
     "children[0].ranks[1]: found 256; allowed: a whole number, 0 to 255"},
    {"children: [{ switch: rack7, ranks: [0, 4], port: h0 }]",
     "children[0].ranks: found rank 4 with 4 members; allowed: ranks of the ring, ranks 0 to 3"},
    {"children: [{ rank: 4 }]",
     "children[0].rank: found rank 4 with 4 members; allowed: ranks of the ring, ranks 0 to 3"},
    {"children: [{ rank: four }]",
     "children[0].rank: found \"four\"; allowed: a whole number, 0 to 255"},
    {"children: [{ rank: 0 }, { switch: rack7, ranks: [2, 3], port: h0 }]",
     "children[1].ranks: found ranks 2 to 3 after rank 0; allowed: a child that begins with rank "
     "1: children stand in ring order and leave no rank out"},
    {"children: [{ switch: rack7, ranks: [0, 1], port: h0 }, { rank: 1 }]",
     "children[1].rank: found rank 1 after ranks 0 to 1; allowed: a child that begins with rank 2: "
     "children stand in ring order and leave no rank out"},
    {"children: [{ rank: 1 }, { rank: 0 }]",
     "children[0].rank: found rank 1 first, and no parent:; allowed: a child that begins with rank "
     "0: children stand in ring order"},
    {"children: [{ rank: 0 }, { rank: 2 }, { rank: 1 }]",
     "children[1].rank: found rank 2 after rank 0; allowed: a child that begins with rank 1: "
     "children stand in ring order and leave no rank out"},
    {"parent: { switch: spine0, port: up0 }, children: [{ rank: 1 }, { rank: 0 }]",
     "children[1].rank: found rank 0 after rank 1; allowed: a child that begins with rank 2: "
     "children stand in ring order and leave no rank out"},
    {"children: [{ rank: 0 }, { switch: \"rack 7\", ranks: [1, 3], port: h0 }]",
     "children[1].switch: found \"rack 7\"; allowed: a name of at most 64 letters, digits, '_', "
     "'.' and '-'"},
    {"childs: [{ rank: 0 }]",
     "childs: found an unknown key; allowed: id, parallel, window, max_message_bytes, mtu, "
     "patience, "
     "keep_alive, lease, tenant, members, parent, children; did you mean children?"},
    {"children: [{ rank: 0, queue: 1 }]",
     "children[0].queue: found an unknown key; allowed: rank, switch, ranks, port"},
};

constexpr Mistake kPorts[]{
    {"children: [{ rank: 0 }, { switch: rack7, ranks: [1, 3] }]",
     "children[1].port: found nothing: the key is missing; allowed: up0, up1, h0 or h1"},
    {"children: [{ rank: 0 }, { switch: rack7, ranks: [1, 3], port: eth7 }]",
     "children[1].port: found \"eth7\"; allowed: up0, up1, h0 or h1"},
    {"children: [{ rank: 0, port: h9 }, { switch: rack7, ranks: [1, 3], port: h0 }]",
     "children[0].port: found \"h9\"; allowed: up0, up1, h0 or h1"},
    {"children: [{ rank: 0, port: h0 }, { switch: rack7, ranks: [1, 3], port: h0 }]",
     "children[1].port: found \"h0\", which rings[0].children[0].port on line 9 has too; allowed: "
     "a port of its own for each switch, below and above"},
    {"children: [{ switch: rack7, ranks: [0, 2], port: h0 }, { rank: 3, port: h0 }]",
     "children[1].port: found \"h0\", which rings[0].children[0].port on line 9 has too; allowed: "
     "a port of its own for each switch, below and above"},
    {"children: [{ switch: a, ranks: [0, 1], port: h0 }, { switch: b, ranks: [2, 3], port: h0 }]",
     "children[1].port: found \"h0\", which rings[0].children[0].port on line 9 has too; allowed: "
     "a port of its own for each switch, below and above"},
    {"parent: { switch: spine0, port: up0 }, children: [{ rank: 0, port: up0 }]",
     "children[0].port: found \"up0\", which rings[0].parent.port on line 9 has too; allowed: a "
     "port of its own for each switch, below and above"},
    {"children: [{ switch: a, ranks: [0, 1], port: h0 }, { switch: a, ranks: [2, 3], port: h1 }]",
     "children[1].switch: found \"a\", which is rings[0].children[0].switch on line 9 too; "
     "allowed: each switch once"},
    {"parent: { switch: a, port: up0 }, children: [{ switch: a, ranks: [2, 3], port: h1 }]",
     "children[0].switch: found \"a\", which is rings[0].parent.switch on line 9 too; allowed: "
     "each switch once"},
};

constexpr Mistake kRanges[]{
    {"children: [{ rank: 0 }, { switch: rack7, ranks: [1, 2], port: h0 }]",
     "children: found children for ranks 0 to 2 of 4, and no parent:; allowed: children for ranks "
     "0 to 3, or parent:, the switch that has the others"},
    {"children: [{ rank: 1 }, { rank: 2 }, { rank: 3 }]",
     "children: found children for ranks 1 to 3 of 4, and no parent:; allowed: children for ranks "
     "0 to 3, or parent:, the switch that has the others"},
    {"children: [{ switch: rack7, ranks: [0, 3], port: h0 }]",
     "children: found one child, and no parent:; allowed: two children or more, or parent:, the "
     "switch above"},
    {"parent: { switch: a, port: up0 }, children: [{ rank: 0 }, { switch: b, ranks: [1, 3], port: "
     "h0 }]",
     "parent: found a parent, and children for all ranks; allowed: children: for some of ranks 0 "
     "to 3, or no parent"},
    {"parent: { switch: a, port: up0 }",
     "parent: found a parent, and no children:, so that all ranks are; allowed: children: for some "
     "of ranks 0 to 3, or no parent"},
};

constexpr Mistake kParents[]{
    {"parent: spine0", "parent: found \"spine0\"; allowed: a map with keys out of switch, port"},
    {"parent: { port: up0 }, children: [{ rank: 0 }]",
     "parent.switch: found nothing: the key is missing; allowed: a name of at most 64 letters, "
     "digits, '_', '.' "
     "and '-'"},
    {"parent: { switch: a }, children: [{ rank: 0 }]",
     "parent.port: found nothing: the key is missing; allowed: up0, up1, h0 or h1"},
    {"parent: { switch: a, port: up9 }, children: [{ rank: 0 }]",
     "parent.port: found \"up9\"; allowed: up0, up1, h0 or h1"},
};

template <std::size_t kCount>
void expect_refused(const Mistake (&mistakes)[kCount]) {
  for (const Mistake& mistake : mistakes) {
    EXPECT_EQ(error_of(file_with(mistake.tree)),
              fmt::format("f.yaml:9: rings[0].{}", mistake.error))
        << mistake.tree;
  }
}

TEST(ConfigTree, RefusesWhatIsNoChild) {
  expect_refused(kChildren);
}

TEST(ConfigTree, RefusesPortsThatAreNoSwitchsOwn) {
  expect_refused(kPorts);
}

TEST(ConfigTree, RefusesRanksThatAreNoPartOfATree) {
  expect_refused(kRanges);
}

TEST(ConfigTree, RefusesWhatIsNoParent) {
  expect_refused(kParents);
}

TEST(ConfigTree, MembersHaveNoPortsBesideChildren) {
  EXPECT_EQ(error_of(file_with(kLeaf, ", port: h0")),
            "f.yaml:8: rings[0].members[0].port: found \"h0\" beside children:; allowed: port: in "
            "the entry of this rank under children:");
}

constexpr std::string_view kTwoRings =
    R"(ports: [{ name: a, device: d0, mtu: 1500 }, { name: b, device: d1, mtu: 9000 }]
rings:
- { id: 1, window: 1, max_message_bytes: 40, mtu: MTU1, parent: { switch: s, port: P1 },
    members: [{ ip: 10.0.0.1 }, { ip: 10.0.0.2 }, { ip: 10.0.0.3 }], children: [{ rank: 0, port: R1 }] }
- { id: 2, window: 1, max_message_bytes: 40, parent: { switch: t, port: P2 },
    members: [{ ip: 10.0.0.1 }, { ip: 10.0.0.2 }, { ip: 10.0.0.3 }], children: [{ rank: 0, port: R2 }] }
)";

std::string two_rings(std::string_view ports, std::string_view mtu = "1024") {
  std::string text(kTwoRings);
  const std::pair<std::string_view, std::string_view> holes[]{{"P1", ports.substr(0, 1)},
                                                              {"R1", ports.substr(1, 1)},
                                                              {"P2", ports.substr(2, 1)},
                                                              {"R2", ports.substr(3, 1)},
                                                              {"MTU1", mtu}};
  for (const auto& [hole, value] : holes) {
    text.replace(text.find(hole), hole.size(), value);
  }
  return text;
}

/// All traffic to a host of this switch leaves by one port; a host behind others may be reached by
/// several.
TEST(ConfigTree, AHostOfThisSwitchHasOnePortInAllRings) {
  EXPECT_EQ(error_of(two_rings("abab")), "no error");
  EXPECT_EQ(error_of(two_rings("abba")),
            "f.yaml:6: rings[1].children[0].port: found \"a\" for 10.0.0.1, which "
            "rings[0].children[0].port on line 4 ties to b; allowed: one port for each address");
}

/// Of ports that no child and no parent is behind, none matters.
TEST(ConfigTree, PacketsFitThePortsOfTheTree) {
  EXPECT_EQ(error_of(two_rings("abab", "2048")),
            "f.yaml:3: rings[0].mtu: found 2048, which makes packets of 2112 bytes for 10.0.0.3, "
            "over port a's mtu of 1500; allowed: 256, 512 or 1024 here or at least 2112 in "
            "ports[0].mtu");
  EXPECT_EQ(error_of(two_rings("baba", "1024")), "no error");
}

using Lines = std::vector<std::string>;

Lines changes(std::string_view from, std::string_view to) {
  Lines lines;
  for (const Change& change : difference(config_with(from), config_with(to))) {
    lines.push_back(fmt::format("{}: {} -> {}: {}", change.place, change.from, change.to,
                                name_of(change.effect)));
    EXPECT_EQ(change.ring, 17U);
  }
  return lines;
}

std::string edited(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  result.replace(result.find(from), from.size(), to);
  return result;
}

TEST(ConfigTree, NamesAndPortsOfRanksChangeInPlace) {
  EXPECT_EQ(changes(kLeaf, edited(kLeaf, "spine0", "spine1")),
            Lines{"rings[17].parent.switch: spine0 -> spine1: in_place"});
  EXPECT_EQ(changes(kLeaf, edited(kLeaf, "h0", "h1")),
            Lines{"rings[17].children[0].port: h0 -> h1: in_place"});
  EXPECT_EQ(changes(kRoot, edited(kRoot, "rack7", "rack8")),
            Lines{"rings[17].children[1].switch: rack7 -> rack8: in_place"});
}

TEST(ConfigTree, AnotherPlaceInTheTreeMakesTheRingAnew) {
  EXPECT_EQ(changes(kLeaf, edited(kLeaf, "up0", "up1")),
            Lines{"rings[17].parent.port: up0 -> up1: ring_made_anew"});
  EXPECT_EQ(changes(kRoot, edited(kRoot, "up1", "up0")),
            Lines{"rings[17].children[1].port: up1 -> up0: ring_made_anew"});
  EXPECT_EQ(changes(kRoot, "children: [{ rank: 0 }, { rank: 1 }, { switch: rack7, ranks: [2, 3], "
                           "port: up1 }]"),
            Lines{"rings[17].children: 0 [1, 3] -> 0 1 [2, 3]: ring_made_anew"});
  EXPECT_EQ(changes("patience: 600", kLeaf),
            (Lines{"rings[17].parent.switch: - -> spine0: in_place",
                   "rings[17].parent.port: - -> up0: ring_made_anew",
                   "rings[17].children: - -> 1 2: ring_made_anew"}));
}

TEST(ConfigTree, TheUsualChildrenWrittenOutChangeNothing) {
  EXPECT_EQ(
      changes("patience: 600", "children: [{ rank: 0 }, { rank: 1 }, { rank: 2 }, { rank: 3 }]"),
      Lines{});
}

} // namespace
} // namespace weir::config::config_tree_test
