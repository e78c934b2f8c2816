// SPDX-License-Identifier: BSD-3-Clause

/// What two configurations differ in, in words. keys_test.cpp tries every key.

#include "config/difference.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config::difference_test {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kPorts = "ports: [{ name: p0, device: d0 }, { name: p1, device: d1 }]\n";
constexpr std::string_view kSamePortsTurned =
    "ports: [{ name: p1, device: d1 }, { name: p0, device: d0 }]\n";
constexpr std::string_view kRing1 =
    "  - { id: 1, window: 4, max_message_bytes: 4096, members: [{ ip: 10.0.0.1, port: p0 }, "
    "{ ip: 10.0.0.2 }] }\n";
constexpr std::string_view kRing2 =
    "  - { id: 2, window: 1, max_message_bytes: 512, members: [{ ip: 10.0.1.1 }, { ip: 10.0.1.2 "
    "}] }\n";

Config config_of(std::string_view ports, std::string_view rest) {
  return parse_config(fmt::format("{}{}", ports, rest), "f.yaml");
}

Config with_rings(std::string_view ports, std::string_view rings) {
  return config_of(ports, fmt::format("rings:\n{}", rings));
}

std::string edited(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  result.replace(result.find(from), from.size(), to);
  return result;
}

Lines lines_of(const std::vector<Change>& changes) {
  Lines lines;
  for (const Change& change : changes) {
    lines.push_back(fmt::format("{}: {} -> {}: {}", change.place, change.from, change.to,
                                name_of(change.effect)));
  }
  return lines;
}

TEST(Difference, RingsAreFoundAgainByTheirIds) {
  const auto one = std::string(kRing1);
  const auto two = std::string(kRing2);
  EXPECT_EQ(lines_of(difference(with_rings(kPorts, one + two), with_rings(kPorts, two + one))),
            Lines{});
  EXPECT_EQ(lines_of(difference(with_rings(kPorts, one), with_rings(kPorts, two))),
            (Lines{"rings[1]: 2 members, window 4, 4096 bytes -> -: ring_withdrawn",
                   "rings[2]: - -> 2 members, window 1, 512 bytes: ring_made"}));
}

TEST(Difference, PortsAreFoundAgainByTheirNames) {
  EXPECT_EQ(lines_of(difference(with_rings(kPorts, kRing1), with_rings(kSamePortsTurned, kRing1))),
            Lines{})
      << "p0 is another number, but the same port";
  const std::string moved = edited(kRing1, "p0", "p1");
  EXPECT_EQ(lines_of(difference(with_rings(kPorts, kRing1), with_rings(kSamePortsTurned, moved))),
            Lines{"rings[1].members[0].port: p0 -> p1: in_place"})
      << "p1 is the same number as p0 was, but another port";
}

/// Where the switch has set room aside for ports.
TEST(Difference, PortsComeAndGoWhereThereIsRoom) {
  constexpr std::string_view other =
      "ports: [{ name: p0, device: d0 }, { name: p9, device: d9 }]\n";
  constexpr std::string_view room = "spare: { rings: 0, members: 0, frames: 0, ports: 1 }\n";
  EXPECT_EQ(lines_of(difference(config_of(kPorts, room), config_of(other, room))),
            (Lines{"ports[p1]: d1 -> -: port_closed", "ports[p9]: - -> d9: port_opened"}));
  EXPECT_EQ(lines_of(difference(config_of(kPorts, ""), config_of(other, ""))),
            (Lines{"ports[p1]: d1 -> -: restart", "ports[p9]: - -> d9: restart"}));
  Config without_p0 = config_of(kPorts, room);
  without_p0.ports[0] = {}; // closed by a reload
  EXPECT_EQ(
      lines_of(difference(without_p0, config_of("ports: [{ name: p1, device: d1 }]\n", room))),
      Lines{});
}

TEST(Difference, EachChangeOfARingNamesIt) {
  const std::string other =
      edited(edited(kRing1, "window: 4", "window: 8, patience: 5"), "10.0.0.2", "10.0.0.3");
  const auto changes = difference(with_rings(kPorts, kRing1), with_rings(kPorts, other));
  EXPECT_EQ(lines_of(changes), (Lines{"rings[1].window: 4 -> 8: ring_made_anew",
                                      "rings[1].patience: 600 -> 5: in_place",
                                      "rings[1].members[1].ip: 10.0.0.2 -> 10.0.0.3: "
                                      "ring_made_anew"}));
  EXPECT_TRUE(std::ranges::all_of(changes, [](const Change& change) { return change.ring == 1U; }));
}

TEST(Difference, ADefaultThatIsWrittenOutChangesNothing) {
  EXPECT_EQ(lines_of(difference(config_of(kPorts, ""),
                                config_of(kPorts, "l2: { aging_s: 300, entries: 8192 }\nrings: []\n"
                                                  "spare: { rings: 0, members: 0, frames: 0 }\n"))),
            Lines{});
}

/// A control service that the file turns off is not the one that it does not mention.
TEST(Difference, NoControlServiceIsNotTheUsualOne) {
  EXPECT_EQ(
      lines_of(difference(config_of(kPorts, ""), config_of(kPorts, "control: { listen: [] }\n"))),
      Lines{"control.listen: - -> []: restart"});
}

TEST(Difference, WhatHasChangedInPlaceDiffersNoMore) {
  const Config running = config_of(kPorts, "");
  const Config wanted = config_of(
      edited(kPorts, "device: d0", "device: d0, macs: [\"52:54:00:00:00:01\"], mtu: 9000"),
      "l2: { aging_s: 5, entries: 16 }\nconnections: { aging_s: 6, plain_entries: 7 }\n");
  EXPECT_EQ(lines_of(difference(changed_in_place(running, wanted), wanted)),
            (Lines{"ports[p0].mtu: 1500 -> 9000: restart", "l2.entries: 8192 -> 16: restart",
                   "connections.plain_entries: 4096 -> 7: restart"}));
}

} // namespace
} // namespace weir::config::difference_test
