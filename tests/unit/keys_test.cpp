// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"
#include "config/keys.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

namespace weir::config {
namespace {

/// Every key, the first entry of each list.
constexpr std::string_view kEverything = R"(
eal: { options: ["--no-huge"] }
ports:
  - name: p0
    device: "net_tap0,iface=a"
    macs: ["52:54:00:00:00:01"]
    rx_queues: 2
    mtu: 1500
    rx_descriptors: 512
    tx_descriptors: 256
    outer_tag: 802.1ad
lcores:
  - { id: 1, roles: [rx, worker, tx], idle: yield }
l2: { aging_s: 60, entries: 1024 }
connections: { plain_entries: 100, aging_s: 30 }
metrics: { listen: "127.0.0.1:9464" }
control:
  listen: ["127.0.0.1:9465"]
  tls: { certificate: a, key: b, client_authority: c }
  operators: [admin]
tenants:
  - { name: red, rings: 1, memory_mib: 64, packets_per_second: 1000 }
spare: { rings: 1, members: 2, frames: 64 }
state_directory: /var/lib/weir
drain_s: 7
rings:
  - id: 1
    window: 4
    max_message_bytes: 16384
    mtu: 512
    patience: 5
    keep_alive: rnr
    lease: 60
    tenant: red
    members:
      - { ip: 10.0.0.1, port: p0 }
      - { ip: 10.0.0.2, port: p0 }
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

/// A value that is not allowed is answered with the table's words.
TEST(KeyTable, ErrorsSayWhatIsAllowed) {
  for (const Key& key : keys()) {
    // A map's keys and the names of ports and tenants are in the error instead.
    const bool has_own_words = std::holds_alternative<Map>(key.value) ||
                               key.path == "rings[].members[].port" || key.path == "rings[].tenant";
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

TEST(KeyTable, PlacesBecomePaths) {
  EXPECT_EQ(key_of("rings[31].members[255].ip").path, "rings[].members[].ip");
  EXPECT_EQ(key_of("").path, "");
  EXPECT_THROW(key_of("ports[0].colour"), std::logic_error);
  EXPECT_EQ(names_in("rings[3].members[0]"), (std::vector<std::string_view>{"ip", "port"}));
  EXPECT_EQ(names_in("l2"), (std::vector<std::string_view>{"aging_s", "entries"}));
}

} // namespace
} // namespace weir::config
