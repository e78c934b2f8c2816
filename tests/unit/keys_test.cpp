// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"
#include "config/difference.hpp"
#include "config/keys.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::config::keys_test {
namespace {

/// Every key, the first entry of each list.
constexpr std::string_view kEverything = R"(
eal: { options: ["--no-huge"] }
ports:
  - name: p0
    device: "net_tap0,iface=a"
    macs: ["52:54:00:00:00:01"]
    rx_queues: 2
    rx_steering: flow
    mtu: 1500
    rx_descriptors: 512
    tx_descriptors: 256
    outer_tag: 802.1ad
    bridge: yes
  - { name: up0, device: d1 }
  - { name: up1, device: d2 }
  - { name: p9, device: "net_tap1,iface=b" }
lcores:
  - { id: 1, roles: [rx, worker, tx], idle: yield }
l2: { aging_s: 60, entries: 1024, loop_detection: yes }
stations:
  - { mac: "52:54:00:00:00:07", port: p9 }
connections: { plain_entries: 100, aging_s: 30 }
metrics: { listen: "127.0.0.1:9464" }
control:
  listen: ["127.0.0.1:9465"]
  tls: { certificate: a, key: b, client_authority: c }
  operators: [admin]
  fabric: lab
  managers: [mgr]
tenants:
  - { name: red, rings: 1, memory_mib: 64, neighbours: 9, packets_per_second: 1000,
      operators: 2, operator_price: 900, regions: 2, region_members: 8, region_frames: 64,
      hosts: [10.0.0.0/24, "2001:db8::/32"] }
  - { name: blue }
operators:
  - { file: /etc/weir/sum.weir, tenants: [red] }
spare: { rings: 1, members: 2, frames: 64, ports: 0 }
state_directory: /var/lib/weir
drain_s: 7
regions: { address: 10.0.0.254, mac: "02:57:45:00:00:01", rooms: { regions: 4, members: 16, frames: 1024, entries: 32 } }
rings:
  - id: 1
    parallel: 1
    window: 4
    max_message_bytes: 16384
    mtu: 512
    patience: 5
    keep_alive: rnr
    lease: 60
    tenant: red
    members: [{ ip: 10.0.0.1 }, { ip: 10.0.0.2 }, { ip: 10.0.0.3 }]
    parent: { switch: spine, port: up0 }
    children:
      - { switch: rack, ranks: [0, 1], port: p0 }
)";

/// The node at a path of the table; the first entry of each list on the way.
YAML::Node node_at(const YAML::Node& document, std::string_view path) {
  YAML::Node node;
  node.reset(document);
  while (!path.empty()) {
    if (path.starts_with("[]")) {
      node.reset(node[0]);
      path.remove_prefix(2);
      continue;
    }
    path.remove_prefix(path.starts_with('.') ? 1 : 0);
    const std::string name(path.substr(0, path.find_first_of(".[")));
    node.reset(node[name]);
    path.remove_prefix(name.size());
  }
  return node;
}

/// "rings[].id" -> "rings[0].id".
std::string first_place(std::string_view path) {
  std::string place;
  for (const char c : path) {
    place += c == ']' ? "0]" : std::string(1, c);
  }
  return place.empty() ? "(document)" : place;
}

/// kEverything with a value at `key` that no key of its kind may have.
std::string with_wrong_value(const Key& key) {
  YAML::Node document = YAML::Load(std::string(kEverything));
  const YAML::Node wrong =
      std::holds_alternative<Map>(key.value) ? YAML::Load("word") : YAML::Load("{ no: value }");
  if (key.path.empty()) {
    return YAML::Dump(wrong);
  }
  node_at(document, key.path) = wrong;
  return YAML::Dump(document);
}

/// kEverything with another value somewhere, and the change that a key of the table then shows.
struct Edit {
  std::string_view key;
  std::string_view path; // what is replaced
  std::string_view value;
  std::string_view place; // of the change
  Effect effect;
};

constexpr std::string_view kMorePorts =
    "[{ name: p0, device: d0 }, { name: up0, device: d1 }, { name: up1, device: d2 }, "
    "{ name: p1, device: d3 }, { name: p9, device: d9 }]";
constexpr std::string_view kTwoLcores =
    "[{ id: 1, roles: [rx, worker, tx] }, { id: 2, roles: [tx] }]";

constexpr std::string_view kRingWithoutTree =
    "{ id: 1, window: 4, max_message_bytes: 16384, members: [{ ip: 10.0.0.1, port: p0 }, "
    "{ ip: 10.0.0.2 }, { ip: 10.0.0.3 }] }";

constexpr std::string_view kThreeTenants = "[{ name: red }, { name: blue }, { name: green }]";

constexpr std::array kEdits{
    Edit{"eal.options", "eal.options", "[-v]", "eal.options", Effect::restart},
    Edit{"ports", "ports", kMorePorts, "ports[p1]", Effect::restart},
    Edit{"ports[].name", "ports", kMorePorts, "ports[p1]", Effect::restart},
    Edit{"ports[].device", "ports[].device", "x", "ports[p0].device", Effect::restart},
    Edit{"ports[].macs", "ports[].macs", "[]", "ports[p0].macs", Effect::in_place},
    Edit{"ports[].rx_queues", "ports[].rx_queues", "3", "ports[p0].rx_queues", Effect::restart},
    Edit{"ports[].rx_steering", "ports[].rx_steering", "rss", "ports[p0].rx_steering",
         Effect::restart},
    Edit{"ports[].mtu", "ports[].mtu", "9000", "ports[p0].mtu", Effect::restart},
    Edit{"ports[].rx_descriptors", "ports[].rx_descriptors", "64", "ports[p0].rx_descriptors",
         Effect::restart},
    Edit{"ports[].tx_descriptors", "ports[].tx_descriptors", "64", "ports[p0].tx_descriptors",
         Effect::restart},
    Edit{"ports[].outer_tag", "ports[].outer_tag", "802.1Q", "ports[p0].outer_tag",
         Effect::restart},
    Edit{"ports[].bridge", "ports[].bridge", "no", "ports[p0].bridge", Effect::in_place},
    Edit{"lcores", "lcores", kTwoLcores, "lcores[2]", Effect::restart},
    Edit{"lcores[].id", "lcores[].id", "3", "lcores[3]", Effect::restart},
    Edit{"lcores[].roles", "lcores[].roles", "[rx, worker, tx, control]", "lcores[1].roles",
         Effect::restart},
    Edit{"lcores[].idle", "lcores[].idle", "spin", "lcores[1].idle", Effect::restart},
    Edit{"l2.aging_s", "l2.aging_s", "61", "l2.aging_s", Effect::in_place},
    Edit{"l2.entries", "l2.entries", "2048", "l2.entries", Effect::restart},
    Edit{"l2.loop_detection", "l2.loop_detection", "no", "l2.loop_detection", Effect::in_place},
    Edit{"stations", "stations", "[]", "stations[52:54:00:00:00:07]", Effect::in_place},
    Edit{"stations[].mac", "stations[].mac", "52:54:00:00:00:08", "stations[52:54:00:00:00:08]",
         Effect::in_place},
    Edit{"stations[].port", "stations[].port", "p0", "stations[52:54:00:00:00:07].port",
         Effect::in_place},
    Edit{"connections.plain_entries", "connections.plain_entries", "1", "connections.plain_entries",
         Effect::restart},
    Edit{"connections.aging_s", "connections.aging_s", "31", "connections.aging_s",
         Effect::in_place},
    Edit{"metrics.listen", "metrics.listen", "127.0.0.1:1", "metrics.listen", Effect::restart},
    Edit{"control.listen", "control.listen", "[\"127.0.0.1:1\"]", "control.listen",
         Effect::restart},
    Edit{"control.tls.certificate", "control.tls.certificate", "x", "control.tls.certificate",
         Effect::restart},
    Edit{"control.tls.key", "control.tls.key", "x", "control.tls.key", Effect::restart},
    Edit{"control.tls.client_authority", "control.tls.client_authority", "x",
         "control.tls.client_authority", Effect::restart},
    Edit{"control.operators", "control.operators", "[x]", "control.operators", Effect::restart},
    Edit{"control.fabric", "control.fabric", "x", "control.fabric", Effect::restart},
    Edit{"control.managers", "control.managers", "[x]", "control.managers", Effect::restart},
    Edit{"tenants", "tenants", kThreeTenants, "tenants[green]", Effect::restart},
    Edit{"tenants[].name", "tenants", kThreeTenants, "tenants[green]", Effect::restart},
    Edit{"tenants[].rings", "tenants[].rings", "2", "tenants[red].rings", Effect::restart},
    Edit{"tenants[].memory_mib", "tenants[].memory_mib", "65", "tenants[red].memory_mib",
         Effect::restart},
    Edit{"tenants[].neighbours", "tenants[].neighbours", "8", "tenants[red].neighbours",
         Effect::restart},
    Edit{"tenants[].packets_per_second", "tenants[].packets_per_second", "1001",
         "tenants[red].packets_per_second", Effect::restart},
    Edit{"tenants[].regions", "tenants[].regions", "3", "tenants[red].regions", Effect::restart},
    Edit{"tenants[].region_members", "tenants[].region_members", "9", "tenants[red].region_members",
         Effect::restart},
    Edit{"tenants[].region_frames", "tenants[].region_frames", "65", "tenants[red].region_frames",
         Effect::restart},
    Edit{"tenants[].operators", "tenants[].operators", "3", "tenants[red].operators",
         Effect::restart},
    Edit{"tenants[].operator_price", "tenants[].operator_price", "901",
         "tenants[red].operator_price", Effect::restart},
    Edit{"operators", "operators", "[]", "operators[/etc/weir/sum.weir]", Effect::restart},
    Edit{"operators[].file", "operators[].file", "/etc/weir/max.weir",
         "operators[/etc/weir/sum.weir]", Effect::restart},
    Edit{"operators[].tenants", "operators[].tenants", "[blue]",
         "operators[/etc/weir/sum.weir].tenants", Effect::restart},
    Edit{"tenants[].hosts", "tenants[].hosts", "[10.0.0.0/25]", "tenants[red].hosts",
         Effect::restart},
    Edit{"drain_s", "drain_s", "8", "drain_s", Effect::in_place},
    Edit{"spare.rings", "spare.rings", "2", "spare.rings", Effect::restart},
    Edit{"spare.members", "spare.members", "3", "spare.members", Effect::restart},
    Edit{"spare.frames", "spare.frames", "65", "spare.frames", Effect::restart},
    Edit{"spare.ports", "spare.ports", "1", "spare.ports", Effect::restart},
    Edit{"state_directory", "state_directory", "/x", "state_directory", Effect::restart},
    Edit{"regions.address", "regions.address", "10.0.0.253", "regions.address", Effect::restart},
    Edit{"regions.mac", "regions.mac", "02:57:45:00:00:02", "regions.mac", Effect::restart},
    Edit{"regions.rooms.regions", "regions.rooms.regions", "5", "regions.rooms.regions",
         Effect::restart},
    Edit{"regions.rooms.members", "regions.rooms.members", "17", "regions.rooms.members",
         Effect::restart},
    Edit{"regions.rooms.frames", "regions.rooms.frames", "1025", "regions.rooms.frames",
         Effect::restart},
    Edit{"regions.rooms.entries", "regions.rooms.entries", "33", "regions.rooms.entries",
         Effect::restart},
    Edit{"rings", "rings", "[]", "rings[1]", Effect::ring_withdrawn},
    Edit{"rings[].id", "rings[].id", "2", "rings[2]", Effect::ring_made},
    Edit{"rings[].parallel", "rings[].parallel", "2", "rings[2]", Effect::ring_made},
    Edit{"rings[].window", "rings[].window", "5", "rings[1].window", Effect::ring_made_anew},
    Edit{"rings[].max_message_bytes", "rings[].max_message_bytes", "40",
         "rings[1].max_message_bytes", Effect::ring_made_anew},
    Edit{"rings[].mtu", "rings[].mtu", "1024", "rings[1].mtu", Effect::ring_made_anew},
    Edit{"rings[].patience", "rings[].patience", "6", "rings[1].patience", Effect::in_place},
    Edit{"rings[].lease", "rings[].lease", "61", "rings[1].lease", Effect::in_place},
    Edit{"rings[].tenant", "rings[].tenant", "blue", "rings[1].tenant", Effect::ring_made_anew},
    Edit{"rings[].keep_alive", "rings[].keep_alive", "ack", "rings[1].keep_alive",
         Effect::in_place},
    Edit{"rings[].members", "rings[].members",
         "[{ ip: 10.0.0.1 }, { ip: 10.0.0.2 }, { ip: 10.0.0.3 }, { ip: 10.0.0.4 }]",
         "rings[1].members", Effect::ring_made_anew},
    Edit{"rings[].members[].ip", "rings[].members[].ip", "10.0.0.9", "rings[1].members[0].ip",
         Effect::ring_made_anew},
    Edit{"rings[].members[].port", "rings[]", kRingWithoutTree, "rings[1].members[0].port",
         Effect::in_place},
    Edit{"rings[].parent.switch", "rings[].parent.switch", "x", "rings[1].parent.switch",
         Effect::in_place},
    Edit{"rings[].parent.port", "rings[].parent.port", "up1", "rings[1].parent.port",
         Effect::ring_made_anew},
    Edit{"rings[].children", "rings[].children", "[{ rank: 0 }, { rank: 1 }]", "rings[1].children",
         Effect::ring_made_anew},
    Edit{"rings[].children[].rank", "rings[].children[]", "{ rank: 0 }", "rings[1].children",
         Effect::ring_made_anew},
    Edit{"rings[].children[].switch", "rings[].children[].switch", "x",
         "rings[1].children[0].switch", Effect::in_place},
    Edit{"rings[].children[].ranks", "rings[].children[].ranks", "[1, 2]", "rings[1].children",
         Effect::ring_made_anew},
    Edit{"rings[].children[].port", "rings[].children[].port", "up1", "rings[1].children[0].port",
         Effect::ring_made_anew},
};

Config edited(const Edit& edit) {
  YAML::Node document = YAML::Load(std::string(kEverything));
  node_at(document, edit.path) = YAML::Load(std::string(edit.value));
  return parse_config(YAML::Dump(document), "f.yaml");
}

std::string error_of(const std::string& yaml) {
  try {
    parse_config(yaml, "f.yaml");
    return "no error";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(KeyTable, EveryKeyIsRead) {
  EXPECT_EQ(error_of(std::string(kEverything)), "no error");
  for (const Key& key : keys()) {
    const std::string error = error_of(with_wrong_value(key));
    EXPECT_NE(error.find(fmt::format(": {}: found ", first_place(key.path))), std::string::npos)
        << key.path << ": " << error;
  }
}

/// A list of plain values is compared as a whole.
TEST(KeyTable, EveryKeyIsCompared) {
  const Config before = parse_config(kEverything, "f.yaml");
  EXPECT_TRUE(difference(before, before).empty());
  for (const Key& key : keys()) {
    if (std::holds_alternative<Map>(key.value) || key.path.ends_with("[]")) {
      continue;
    }
    const auto edit = std::ranges::find(kEdits, key.path, &Edit::key);
    ASSERT_NE(edit, kEdits.end()) << key.path << " is in no edit";
    const auto changes = difference(before, edited(*edit));
    const auto change = std::ranges::find(changes, edit->place, &Change::place);
    ASSERT_NE(change, changes.end()) << key.path << " is not compared";
    EXPECT_EQ(change->effect, edit->effect) << key.path;
    EXPECT_NE(change->from, change->to) << key.path;
  }
}

/// Those of rings come into force with the rings.
TEST(KeyTable, WhatChangesInPlaceIsInForceAfterwards) {
  const Config before = parse_config(kEverything, "f.yaml");
  for (const Edit& edit : kEdits) {
    if (edit.effect == Effect::in_place && !edit.key.starts_with("rings")) {
      const Config after = edited(edit);
      EXPECT_TRUE(difference(changed_in_place(before, after), after).empty()) << edit.key;
    }
  }
}

/// A value that is not allowed is answered with the table's words.
TEST(KeyTable, ErrorsSayWhatIsAllowed) {
  for (const Key& key : keys()) {
    // A map's keys and the names of ports and tenants are in the error instead.
    const bool has_own_words = std::holds_alternative<Map>(key.value) ||
                               (key.path.starts_with("rings[]") && key.path.ends_with(".port")) ||
                               key.path == "rings[].tenant";
    const std::string error = error_of(with_wrong_value(key));
    EXPECT_NE(error.find("allowed: " + (has_own_words ? "" : allowed(key.value))),
              std::string::npos)
        << key.path << ": " << error;
  }
}

/// A file of rings alone is read as what stands at `rings` in a configuration.
TEST(KeyTable, HoldsForFilesOfRings) {
  const Config config = parse_config(kEverything, "f.yaml");
  constexpr std::string_view ring = "{ id: 2, window: 0, max_message_bytes: 40, members: [] }";
  for (const std::string& file : {std::string(ring), fmt::format("[{}]", ring)}) {
    const bool is_list = file.starts_with('[');
    try {
      parse_rings(file, "r.yaml", config);
      ADD_FAILURE() << file;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(),
                fmt::format("r.yaml:1: {}window: found 0; allowed: a whole number, 1 to "
                            "1024",
                            is_list ? "[0]." : ""));
    }
  }
}

TEST(KeyTable, EachKeyHasAMeaningOrOneAboveOrBelow) {
  for (const Key& key : keys()) {
    const bool is_entry = key.path.ends_with("[]");
    EXPECT_NE(key.meaning.empty(), !std::holds_alternative<Map>(key.value) && !is_entry)
        << key.path;
  }
}

/// The order is that of the pages, and of the names that an error about an unknown key has.
TEST(KeyTable, HasEachKeyOnceBehindTheOneThatItIsIn) {
  std::vector<std::string> seen;
  for (const Key& key : keys()) {
    EXPECT_EQ(std::ranges::count(seen, key.path), 0) << key.path;
    const std::size_t end = key.path.find_last_of(".[");
    const std::string above = key.path.substr(0, end == std::string::npos ? 0 : end);
    EXPECT_TRUE(key.path.empty() || std::ranges::count(seen, above) == 1) << key.path;
    seen.push_back(key.path);
  }
  const auto last = std::span(seen).last(3);
  EXPECT_EQ(std::vector(last.begin(), last.end()),
            (std::vector<std::string>{"rings[].children[].ranks", "rings[].children[].ranks[]",
                                      "rings[].children[].port"}));
}

} // namespace
} // namespace weir::config::keys_test
